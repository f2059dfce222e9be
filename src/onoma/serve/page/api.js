/** Requests to the service. Addresses are relative, so that the page works behind a proxy with a path. */

export const FLOOR = 0.02; // lowest score of candidates, and of the threshold slider
export const MOST_CANDIDATES = 2000; // per text, set by the service
const ATTEMPTS = 4;

/** An error of the service: what is wrong, and what to do about it. */
export class ServiceError extends Error {
  constructor(status, code, message) {
    const [what, fix = ""] = message.split(/[;.]?\s*Fix:\s*/);
    super(what);
    Object.assign(this, { status, code, fix });
  }
}

export class Service {
  #key = ""; // of the API, in memory only

  setKey(key) {
    this.#key = key;
  }

  get hasKey() {
    return this.#key !== "";
  }

  model(name) {
    return this.#send(name ? `v1/model?name=${encodeURIComponent(name)}` : "v1/model");
  }

  /** The answer for one text; the service forms batches of the requests of all users. */
  extract(body, signal, onWait) {
    return this.#send("v1/extract", { method: "POST", body: JSON.stringify(body), signal }, onWait);
  }

  async #send(address, options = {}, onWait = () => {}) {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#fetch(address, options);
      if (answer.ok) return answer.json();
      if (answer.status !== 429 || attempt === ATTEMPTS) throw await failure(answer);
      const seconds = Math.min(Number(answer.headers.get("Retry-After")) || attempt, 30);
      onWait(seconds);
      await pause(seconds * 1000, options.signal);
    }
  }

  async #fetch(address, options) {
    const headers = { "Content-Type": "application/json" };
    if (this.#key) headers.Authorization = `Bearer ${this.#key}`;
    try {
      return await fetch(address, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const fix = "check that `onoma serve` is still running, then press Extract again";
      throw new ServiceError(0, "unreachable", `the service does not answer. Fix: ${fix}`);
    }
  }
}

async function failure(answer) {
  const content = await answer.json().catch(() => null);
  const code = content?.error?.code ?? "failed";
  const message = content?.error?.message ?? `the service answered with status ${answer.status}. Fix: try again`;
  return new ServiceError(answer.status, code, message);
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
