"""The reports of a body that has no parent."""

from sf.system.processes.reports import Reports


class RecordedReports(Reports):
    def __init__(self):
        self.sent = []

    def send(self, report):
        self.sent.append(report)

    @property
    def kinds(self):
        return [type(report).__name__ for report in self.sent]
