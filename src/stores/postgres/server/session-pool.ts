import type { StoreConnections } from "../../../service/index.ts";
import type { Session } from "./session.ts";

/** A pool that opens sessions on demand and keeps sessions until it is closed. One caller at a time uses a session. */
export class SessionPool {
  readonly #open: () => Session;
  /** All open sessions, whether idle or in use. */
  readonly #sessions: Session[] = [];
  readonly #idle: Session[] = [];

  constructor(open: () => Session) {
    this.#open = open;
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  /** Runs `work` with a session. The session's work has a deadline on the `performance.now()` clock. */
  async use<Result>(deadlineMs: number, work: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? this.#open();
    if (!this.#sessions.includes(session)) this.#sessions.push(session);
    session.deadlineMs = deadlineMs;
    try {
      return await work(session);
    } finally {
      this.#idle.push(session);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()));
  }
}
