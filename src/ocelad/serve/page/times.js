// Measures what a person feels: the time from key to paint and from key to acknowledgement, for tests to read.

const kept = { painted: [], acknowledged: [], shown: [] };
window.__ocelad = kept;

function keep(name, ms) {
  kept[name].push(ms);
  kept[name].splice(0, kept[name].length - 1000);
  document.body.dataset[`${name}Ms`] = ms.toFixed(2);
}

/** Acts once the coming frame is painted: a message comes after its layout and paint, its own callbacks before. */
export function afterPaint(act) {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      act();
    };
    port2.postMessage(null);
  });
}

export const times = {
  /** Call it when the next question is in the document: it is painted with the frame that comes. */
  painted(start) {
    keep("shown", performance.now() - start);
    afterPaint(() => keep("painted", performance.now() - start));
  },

  acknowledged(ms) {
    keep("acknowledged", ms);
  },
};
