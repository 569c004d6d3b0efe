// Keeps small values in the browser; where its storage is forbidden or full, they live as long as the page.

class Store {
  constructor(open) {
    this.memory = new Map();
    try {
      this.area = open();
    } catch {
      this.area = null; // some browsers forbid even to look at it
    }
  }

  get(key) {
    try {
      const text = this.memory.get(key) ?? this.area?.getItem(key) ?? null;
      return text === null ? null : JSON.parse(text);
    } catch {
      return null; // something else wrote it
    }
  }

  set(key, value) {
    const text = JSON.stringify(value);
    try {
      this.area.setItem(key, text);
      this.memory.delete(key);
    } catch {
      this.memory.set(key, text);
    }
  }

  remove(key) {
    this.memory.delete(key);
    try {
      this.area?.removeItem(key);
    } catch {
      // nothing was kept
    }
  }

  keys(prefix) {
    const names = new Set(this.memory.keys());
    try {
      for (let i = 0; i < (this.area?.length ?? 0); i += 1) names.add(this.area.key(i));
    } catch {
      // nothing was kept
    }
    return [...names].filter((name) => name.startsWith(prefix));
  }
}

export const local = new Store(() => window.localStorage);
export const session = new Store(() => window.sessionStorage);

/** A random identifier; `crypto.randomUUID` exists only on https and on this machine's own address. */
export function randomId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
