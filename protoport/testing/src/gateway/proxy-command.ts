import { EventEmitter, once } from "node:events";
import { expect } from "vitest";
import { proxyCommand } from "../../../proxy/src/command/program.ts";
import { within } from "../deadline.ts";

/** Runs `protoport` in this process until it ends, and returns its exit code and its output. */
export async function runProxyCommand(
  ...args: readonly string[]
): Promise<{ readonly exitCode: number; readonly printed: string; readonly errors: string }> {
  const { done, printed, errors } = new ProxyCommand(args);
  const exitCode = await within(done, "the end of the command");
  return { exitCode, printed: printed.join("\n"), errors: errors.join("\n") };
}

/** `protoport` in this process. Dispose of the command with `await using`, which requires the exit code 0. */
export class ProxyCommand implements AsyncDisposable {
  readonly printed: string[] = [];
  readonly errors: string[] = [];
  readonly lines: string[] = [];
  readonly done: Promise<number>;
  /** The signals that the command listens to. */
  readonly signals: string[] = [];
  readonly #events = new EventEmitter();
  readonly #stopped = Promise.withResolvers<void>();
  #reload: (() => void) | undefined;
  #hasEnded = false;

  constructor(args: readonly string[]) {
    this.done = proxyCommand(args, {
      out: (text) => this.#print(text, this.printed),
      err: (text) => this.#print(text, this.errors),
      stopRequested: () => {
        this.signals.push("SIGTERM");
        return this.#stopped.promise;
      },
      onHangup: (reload) => {
        this.signals.push("SIGHUP");
        this.#reload = reload;
      },
    });
    const end = (): void => {
      this.#hasEnded = true;
      this.#events.emit("change");
    };
    void this.done.then(end, end);
  }

  /** The URL for calls, once the command serves. */
  get serving(): Promise<string> {
    return this.url(/^(\S+) serves/);
  }

  /** Returns the URL in a printed line. Rejects if the command ends first. */
  async url(line: RegExp): Promise<string> {
    const [, url] = (await this.waitForLine(line)) ?? [];
    if (url === undefined) throw new Error(`the command ended: ${this.lines.join("\n")}`);
    return url;
  }

  /** Returns the first line's match from line `from` on, or `undefined` if the command ends first. */
  async waitForLine(pattern: RegExp, from: number = 0): Promise<RegExpExecArray | undefined> {
    return await within(this.#findLine(pattern, from), `a line that matches ${String(pattern)}`);
  }

  stop(): void {
    this.#stopped.resolve();
  }

  /** Reads configuration, descriptors and certificates again, as SIGHUP does. */
  hangUp(): void {
    // Without a handler, the system terminates the process.
    if (this.#reload === undefined) throw new TypeError("no SIGHUP handler: the process would exit");
    this.#reload();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    expect(await within(this.done, "the end of the command")).toBe(0);
  }

  #print(text: string, stream: string[]): void {
    stream.push(text);
    this.lines.push(text);
    this.#events.emit("change");
  }

  async #findLine(pattern: RegExp, from: number): Promise<RegExpExecArray | undefined> {
    for (let at = from; ; at++) {
      while (at >= this.lines.length) {
        if (this.#hasEnded) return undefined;
        await once(this.#events, "change");
      }
      const found = pattern.exec(this.lines[at] ?? "");
      if (found !== null) return found;
    }
  }
}
