"""A screen that is a file: mp4 or gif, written by ffmpeg while the pictures come."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np

from sf.extras import how_to_install

# Browsers play H.264 with half the colour resolution, and begin before they have all of it where the index comes first.
_MP4 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast", "-crf", "24", "-movflags", "+faststart"]
_MP4 += ["-f", "mp4"]
# The colours of every picture are its own: to choose them for all, ffmpeg would keep the whole video in memory.
_PALETTE = "split[a][b];[a]palettegen=max_colors=64:stats_mode=single[p];[b][p]paletteuse=new=1:dither=none"
_GIF = ["-filter_complex", _PALETTE, "-loop", "0", "-f", "gif"]


class Video:
    """Takes pictures until `finish`, which gives the file its name, or `close`, which leaves what was there before."""

    def __init__(self, path: Path, max_s: float) -> None:
        """max_s: seconds of video after which `show` takes no more.

        Raises ValueError for another kind of file, and where ffmpeg is missing.
        """
        if path.suffix not in (".mp4", ".gif"):
            raise ValueError(f"video is {str(path)!r}: name a file that ends with .mp4 or .gif")
        try:
            import imageio_ffmpeg  # noqa: PLC0415  an extra
        except ImportError:
            raise ValueError(f"video needs ffmpeg: {how_to_install('video')}") from None
        self._ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._max_s = max_s
        self._process: subprocess.Popen[bytes] | None = None
        self._num_left = 0
        self.is_full = False
        # A gif of more would be too large to be of use: it has nothing like motion compensation.
        self.max_fps, self.limit = (12.5, (640, 480)) if path.suffix == ".gif" else (60.0, (1920, 1080))

    def open(self, size: tuple[int, int], fps: float, title: str) -> None:
        """size: width and height, even numbers. Raises ValueError where no file can be written there."""
        width, height = size
        self._num_left = round(self._max_s * fps)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._temporary.touch()
        except OSError as error:
            raise ValueError(f"video is {str(self._path)!r}: it cannot be written there ({error})") from None
        self._process = subprocess.Popen(
            [
                *(self._ffmpeg, "-y", "-v", "error", "-nostdin", "-f", "rawvideo", "-pix_fmt", "rgb24"),
                *("-s", f"{width}x{height}", "-r", f"{fps:.6f}", "-i", "-", "-metadata", f"title={title}"),
                *(_GIF if self._path.suffix == ".gif" else _MP4),
                str(self._temporary),
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: the file is to be finished
        )

    def show(self, picture: np.ndarray) -> bool:
        """picture: [H, W, 3] uint8, contiguous. Returns whether there is room for more. Raises ValueError."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.data)
        except OSError:
            self.finish()  # which knows why
        self._num_left -= 1
        self.is_full = self._num_left <= 0
        return not self.is_full

    def finish(self) -> bool:
        """Returns whether there is a file, for which it takes a picture. Raises ValueError where it was not written."""
        if self._process is None:
            return False
        _, errors = self._process.communicate()
        if self._process.returncode != 0:
            self.close()
            raise ValueError(f"{self._path} cannot be written: {_last_line(errors)}")
        self._process = None
        try:
            self._temporary.replace(self._path)
        except OSError as error:
            self.close()
            raise ValueError(f"{self._path} cannot be written: {error}") from None
        return True

    def close(self) -> None:
        """Leave nothing of a video that is not finished."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._temporary.unlink(missing_ok=True)


def _last_line(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "ffmpeg has failed"
