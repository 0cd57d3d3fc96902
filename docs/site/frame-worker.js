/* Lets the search run on pages that are opened from a disk, where browsers start no worker: the worker's script runs in a
   hidden frame of the page instead. */
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const place = new URL(url, location.href).href;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // Otherwise a browser may put an empty document in the place of this one later.
      inside.document.open();
      inside.document.write("<body></body>");
      inside.document.close();

      const run = (script) =>
        new Promise((resolve, reject) => {
          const element = inside.document.createElement("script");
          element.src = script;
          element.onload = resolve;
          element.onerror = () => reject(new Error(`cannot load ${script}`));
          inside.document.body.append(element);
        });
      inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => run(new URL(script, place).href)), Promise.resolve());
      inside.postMessage = (data) => this.tell("message", new MessageEvent("message", { data: structuredClone(data) }));
      inside.addEventListener("error", (event) => this.tell("error", new ErrorEvent("error", event)));
      this.ready = run(place);
      this.ready.catch((error) => this.tell("error", new ErrorEvent("error", { message: error.message, error })));
    }

    tell(kind, event) {
      this.dispatchEvent(event);
      this[`on${kind}`]?.(event);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      const event = () => new inside.MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => inside.dispatchEvent(event())).catch(() => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
