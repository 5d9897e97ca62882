import type { StoreConnections } from "../../../service/index.ts";
import type { Session } from "./session.ts";

/** A pool that opens sessions on demand and keeps sessions until it is closed. One caller at a time uses a session. */
export class SessionPool {
  readonly #open: () => Session;
  readonly #max: number;
  /** All open sessions, whether idle or in use. */
  readonly #sessions: Session[] = [];
  readonly #idle: Session[] = [];
  readonly #waiting: ((session: Session) => void)[] = [];

  /** @param max - maximum number of sessions. Further callers wait for a session. Default unlimited */
  constructor(open: () => Session, max: number = Number.POSITIVE_INFINITY) {
    this.#open = open;
    this.#max = max;
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  /** Runs `work` with a session. The session's work has a deadline on the `performance.now()` clock. */
  async use<Result>(deadlineMs: number, work: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? (this.#sessions.length < this.#max ? this.#add() : await this.#next());
    session.deadlineMs = deadlineMs;
    try {
      return await work(session);
    } finally {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#idle.push(session);
      else waiting(session);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()));
  }

  #add(): Session {
    const session = this.#open();
    this.#sessions.push(session);
    return session;
  }

  #next(): Promise<Session> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
