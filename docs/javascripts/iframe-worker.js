// Browsers start no worker from a file, so on file:// the search runs in a hidden frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const scope = frame.contentWindow
      const load = address => new Promise((done, failed) => {
        const script = frame.contentDocument.createElement("script")
        script.src = new URL(address, document.baseURI)
        script.onload = done
        script.onerror = failed
        frame.contentDocument.body.appendChild(script)
      })
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      scope.importScripts = (...addresses) => Promise.all(addresses.map(load))
      this.scope = scope
      this.loaded = load(url)
      this.frame = frame
    }

    async postMessage(data) {
      await this.loaded
      this.scope.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
