// Browsers start no worker from a file, and the search is one: opened from a folder, it runs in a
// hidden frame, which has a global object of its own as a worker has.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.head.appendChild(frame)
      const inside = frame.contentWindow
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }))
      this.postMessage = (data) => waiting.push(data)
      const script = inside.document.createElement("script")
      script.src = address
      script.onload = () => {
        this.postMessage = deliver
        waiting.forEach(deliver)
      }
      inside.document.head.appendChild(script)
    }
  }
}
