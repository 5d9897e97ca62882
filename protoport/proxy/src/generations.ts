import { type CurrentNodeServer, ignoredByListen, guardCallback } from "@protoport/gateway/forward";
import { refuseIgnoredOptions } from "@protoport/gateway/options";
import { type ReloadReport, UnknownPaths } from "./forward/index.ts";
import {
  type Generation,
  isReported,
  linesOf,
  nextGeneration,
  type Opened,
  type OpenedOptions,
  openReaders,
  reportOf,
} from "./generation.ts";
import { ConnectBackoff } from "./upstreams/index.ts";

/** Throws or rejects to refuse new options, which then are not applied. */
type Accept = (next: Generation) => void | Promise<void>;

/** Milliseconds for which replaced upstreams serve the calls in flight. 20 s, like the command's drain timeout. */
const replacedDrainMs = 20_000;

/** Maximum milliseconds that `accept` may take, because later options wait for it. 30 s, like a read of descriptors. */
const acceptMs = 30_000;

/** Holds the generation in use. {@link apply} replaces it for other options, {@link reload} for new descriptors. */
export class Generations<Options> {
  readonly #open: (given: Options, noteUnknownPath: (path: string) => void) => OpenedOptions;
  /** Whether `listen` was called. */
  usesListen = false;
  #inUse: Generation | undefined;
  #served: CurrentNodeServer | undefined;
  #isStopped = false;
  /** The parts that the running {@link apply} has opened. */
  #opening: Opened | undefined;
  /** Set to the parts in {@link #opening} if their descriptors change before they are in use. */
  #changed: Opened | undefined;
  #applied: Promise<unknown> | undefined;
  #reloaded: Promise<unknown> = Promise.resolve();
  /** The reload that starts when the running reload is done. */
  #nextReload: Promise<ReloadReport> | undefined;
  readonly #unknownPaths = new UnknownPaths();
  /** The backoff between attempts to read descriptors. */
  #backoff = new ConnectBackoff();
  #retryTimer: NodeJS.Timeout | undefined;

  /** @param open - opens the parts for options, without a read or a connection */
  constructor(open: (given: Options, noteUnknownPath: (path: string) => void) => OpenedOptions) {
    this.#open = open;
  }

  /** The generation in use. Throws before the first generation. */
  get inUse(): Generation {
    if (this.#inUse === undefined) throw new TypeError("no descriptors are loaded");
    return this.#inUse;
  }

  /** Registers the object whose server each generation replaces. */
  serveWith(served: CurrentNodeServer): void {
    this.#served = served;
    served.server = this.inUse.server;
  }

  /** Applies other options, after earlier calls of `apply`. If they cannot be used, rejects and changes nothing. */
  apply(given: Options, accept?: Accept): Promise<Generation> {
    const apply = (): Promise<Generation> => this.#apply(given, accept);
    const applied = this.#applied?.then(apply) ?? apply();
    // A settled promise would keep its generation in memory.
    this.#applied = applied.then(
      () => undefined,
      () => undefined,
    );
    return applied;
  }

  /** Reads the descriptors again, once the running reload is done. Never rejects. */
  reload(): Promise<ReloadReport> {
    this.#nextReload ??= this.#reloaded.then(() => {
      this.#nextReload = undefined;
      const report = this.#reload();
      this.#reloaded = report;
      return report;
    });
    return this.#nextReload;
  }

  /** Ends reads and retries. Closes the upstreams once `stopGateway` is done. */
  async stop(stopGateway: () => Promise<void>): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#retryTimer);
    const { opened } = this.inUse;
    opened.closing.abort();
    await Promise.all([close(this.#opening), stopGateway().then(() => close(opened))]);
  }

  async #apply(given: Options, accept: Accept | undefined): Promise<Generation> {
    try {
      if (this.#isStopped) throw closedError();
      const options = this.#open(given, (path) => this.#noteUnknownPath(path));
      this.#opening = openReaders(options, (late) => this.#readAgain(late));
      return await this.#next(this.#opening, accept);
    } catch (error) {
      await close(this.#opening);
      throw this.#isStopped ? closedError() : error;
    } finally {
      this.#opening = undefined;
      this.#changed = undefined;
    }
  }

  async #reload(): Promise<ReloadReport> {
    const last = this.inUse;
    const { options, report: reportFault, closing } = last.opened;
    let next = last;
    let report: ReloadReport;
    try {
      next = await this.#next(last.opened);
      report = reportOf(last, next);
    } catch (error) {
      report = { isChanged: false, added: [], removed: [], problems: linesOf(error) };
    }
    // An error thrown by onReload must not make the reload fail.
    if (isReported(report, last, next) && !closing.signal.aborted)
      guardCallback("onReload", options.onReload, reportFault)?.(report);
    return report;
  }

  /** Creates and uses the next generation, from the options in use or other options. Rejects if they are closed. */
  async #next(opened: Opened, accept?: Accept): Promise<Generation> {
    const next = await nextGeneration(opened, () => this.#inUse);
    if (opened === this.#opening) {
      watch(opened, () => this.#readAgain(opened));
      await waitForAccept(accept?.(next), opened.closing.signal);
      if (this.usesListen) refuseIgnoredOptions(opened.options, ignoredByListen, "listen()");
    }
    // `accept` is asynchronous, and other options or a stop may have closed these options meanwhile.
    opened.closing.signal.throwIfAborted();
    this.#use(next);
    return next;
  }

  /** Replaces the generation in use. Synchronous, so that no caller sees parts of two generations. */
  #use(next: Generation): void {
    const last = this.#inUse;
    const { opened, server, services, compiled, unreadSinceMs } = next;
    this.#inUse = next;
    if (this.#served !== undefined) Object.assign(this.#served, { server, handlerOptions: opened.options });
    this.#unknownPaths.setKnown(services, compiled.routes);
    clearTimeout(this.#retryTimer);
    if (last?.opened !== opened) this.#backoff = new ConnectBackoff();
    if (unreadSinceMs === undefined) this.#backoff.succeeded();
    else this.#retryAt(this.#backoff.failed(unreadSinceMs));
    if (last !== undefined && last.opened !== opened) {
      last.opened.closing.abort();
      // The upstreams still serve the calls that hold the old routes.
      for (const upstream of last.opened.upstreams) upstream.drain(replacedDrainMs);
    }
    if (this.#changed === opened) void this.reload();
  }

  #retryAt(atMs: number): void {
    this.#retryTimer = setTimeout(() => void this.reload(), Math.max(0, atMs - performance.now())).unref();
  }

  /** Reads the descriptors again, at a limited rate, if an unknown path may belong to a new RPC. */
  #noteUnknownPath(path: string): void {
    if (this.#unknownPaths.mayBeNew(path)) void this.reload();
  }

  /** Reads the descriptors again, once the options are in use. */
  #readAgain(opened: Opened): void {
    if (this.#inUse?.opened === opened) void this.reload();
    else if (this.#opening === opened) this.#changed = opened;
  }
}

/** Calls a function when descriptors may have changed, until `opened` is closed. */
function watch({ upstreams, closing }: Opened, changed: () => void): void {
  for (const upstream of upstreams) closing.signal.addEventListener("abort", upstream.watchDescriptors(changed));
}

/** Waits for `accept`, at most {@link acceptMs} and until the options are closed. */
async function waitForAccept(accepting: void | Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const problem = `\`accept\` of reconfigure must resolve within ${acceptMs} ms`;
  const timer = setTimeout(() => reject(new Error(problem)), acceptMs);
  const stop = (): void => reject(closedError());
  signal.addEventListener("abort", stop);
  try {
    await Promise.race([accepting, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Aborts reads in progress, and closes the connections. */
async function close(opened: Opened | undefined): Promise<void> {
  opened?.closing.abort();
  await Promise.all((opened?.upstreams ?? []).map((upstream) => upstream.close()));
}

function closedError(): Error {
  return new Error("the proxy is closed");
}
