// Speaks HTTP with the service: JSON both ways, and errors that say what is wrong.

const PATIENCE = 20_000; // ms; a request that hangs longer counts as lost and is sent again

/** What went wrong: `status` is 0 if no answer came at all, `retryAfter` is in seconds or null. */
export class Problem extends Error {
  constructor(status, detail, retryAfter = null) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Worth sending again as it is: the fault is in the connection, in the service, or in who is signed in. */
  get passing() {
    return this.status === 0 || this.status >= 500 || [401, 403, 408, 425, 429].includes(this.status);
  }
}

export class Api {
  constructor(stream) {
    this.stream = stream;
    this.base = `/v1/streams/${encodeURIComponent(stream)}`;
  }

  get(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== "");
    const search = new URLSearchParams(given).toString();
    return request("GET", `${this.base}/${path}${search && `?${search}`}`);
  }

  post(path, body) {
    return request("POST", `${this.base}/${path}`, body);
  }

  undo(id, by) {
    const who = new URLSearchParams({ by });
    return request("DELETE", `${this.base}/comparisons/${encodeURIComponent(id)}?${who}`);
  }

  info() {
    return request("GET", "/v1/info");
  }

  link() {
    return request("POST", "/v1/links", {});
  }

  url(path) {
    return `${this.base}/${path}`;
  }
}

async function request(method, url, body) {
  const options = { method, headers: { Accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE) };
  if (method !== "GET") options.keepalive = true; // an answer given just before the tab closes still leaves
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  let text;
  try {
    response = await fetch(url, options);
    text = await response.text();
  } catch (error) {
    throw new Problem(0, String(error.message ?? error));
  }
  const content = parsed(text);
  if (!response.ok) {
    const seconds = Number.parseFloat(response.headers.get("Retry-After"));
    throw new Problem(response.status, said(content, response), Number.isFinite(seconds) ? seconds : null);
  }
  if (content === null) throw new Problem(0, "the answer was cut off");
  return content;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function said(content, response) {
  const words = content?.detail ?? content?.title ?? `${response.status} ${response.statusText}`;
  return content?.field ? `${content.field}: ${words}` : String(words);
}
