import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { type FaultReporter, guardCallback, type Routes, type Server } from "../calls/index.ts";
import { noBytes } from "../carriers/index.ts";
import { messageOf, withCode } from "../errors/index.ts";
import { ConnectBackoff } from "../upstreams/index.ts";
import { DescriptorReader, isUnreachable } from "./descriptor-reader.ts";
import type { Described } from "./descriptors.ts";
import type { OpenUpstream } from "./proxied-upstream.ts";

/** What a reload has changed. */
export interface ReloadReport {
  /** The RPCs that were not proxied before: `/package.Service/Method`. */
  readonly added: readonly string[];
  /** The RPCs that are not proxied any more. */
  readonly removed: readonly string[];
  /**
   * Why everything stays as it was, or the upstreams of several whose descriptors could not be read, and stay as they
   * were; empty if all new descriptors are in use.
   */
  readonly problems: readonly string[];
}

/** Options of {@link ProxyTable}. */
interface ProxyTableOptions {
  readonly onReload?: (report: ReloadReport) => void;
}

/** Milliseconds that the descriptors of one of several upstreams may hold up the others. 5 s: most need one round trip. */
const slowReadMs = 5_000;

/** Milliseconds at least between two reloads because of unknown RPCs: anybody can ask for one. 5 s. */
const unknownRpcGapMs = 5_000;

/** The services that are proxied, and the {@link Routes} to them, which a reload replaces as a whole. */
export class ProxyTable {
  /** The server whose routes a reload replaces; calls in flight keep their target. */
  server: Server | undefined;
  services: readonly DescService[] = [];
  /** The services that are not proxied because their descriptors have a hole, with upstream and reason. */
  omitted: readonly string[] = [];
  /** What the services were read from, for each upstream; empty for one that could not be read yet. */
  descriptorSets: readonly Uint8Array[] = [];
  /** Why each upstream could not be read the last time; `undefined` if it could. */
  problems: readonly (string | undefined)[] = [];
  readonly #upstreams: readonly OpenUpstream[];
  readonly #readers: readonly DescriptorReader[];
  readonly #compileRoutes: (described: readonly Described[]) => Routes;
  readonly #report: FaultReporter;
  readonly #options: ProxyTableOptions;
  readonly #closing = new AbortController();
  /** Of upstreams whose descriptors could not be read yet. */
  readonly #backoff = new ConnectBackoff();
  #retry: NodeJS.Timeout | undefined;
  #packages: ReadonlySet<string> = new Set();
  #unknownAtMs = Number.NEGATIVE_INFINITY;
  #routes: Routes | undefined;
  #running: Promise<unknown> = Promise.resolve();
  /** The reload that has not begun. */
  #next: Promise<ReloadReport> | undefined;

  constructor(
    upstreams: readonly OpenUpstream[],
    compileRoutes: (described: readonly Described[]) => Routes,
    report: FaultReporter,
    options: ProxyTableOptions,
  ) {
    this.#upstreams = upstreams;
    this.#readers = upstreams.map(
      (upstream) =>
        new DescriptorReader(
          (signal) => upstream.readDescriptors(signal),
          () => {
            if (!this.#closing.signal.aborted) void this.reload();
          },
        ),
    );
    this.#compileRoutes = compileRoutes;
    this.#report = report;
    this.#options = options;
  }

  /** The routes in use. Throws before the first {@link load}. */
  get routes(): Routes {
    if (this.#routes === undefined) throw new TypeError("no descriptors are loaded");
    return this.#routes;
  }

  /** Whether the descriptors of an upstream could not be read yet: a path that is unknown may be its. */
  get isIncomplete(): boolean {
    return this.descriptorSets.some(({ byteLength }) => byteLength === 0);
  }

  /**
   * Reads the descriptors and puts them in use. Of several upstreams, those that cannot be read keep what they had; at
   * the start, it is enough that some can, and the others cannot be reached: these are tried again, with a back-off.
   *
   * @returns whether they are others than before; rejects if they cannot be used, and then changes nothing
   */
  async load(): Promise<boolean> {
    const begunAtMs = performance.now();
    const limitMs = this.#upstreams.length > 1 ? slowReadMs : Number.POSITIVE_INFINITY;
    const { signal } = this.#closing;
    const read = await Promise.all(this.#readers.map((reader) => reader.read(signal, limitMs)));
    // A source of the program's own may know of no signal.
    signal.throwIfAborted();
    const errors = read.filter((each) => each instanceof Error);
    const wrong = errors.find((error) => !isUnreachable(error));
    const fatal = wrong ?? (errors.length === read.length ? errors[0] : undefined);
    if (fatal !== undefined && this.#routes === undefined) throw fatal;
    const before = this.descriptorSets;
    const sets = read.map((each, at) => (each instanceof Error ? (before[at] ?? noBytes) : each));
    const isSame =
      this.#routes !== undefined && sets.every((set, at) => Buffer.compare(set, before[at] ?? noBytes) === 0);
    if (!isSame) this.#use(sets, this.#describe(sets));
    this.problems = read.map((each) => (each instanceof Error ? messageOf(each) : undefined));
    this.#retryIfIncomplete(begunAtMs);
    return !isSame;
  }

  /** Reloads once whatever reload is under way is done. Never rejects. */
  reload(): Promise<ReloadReport> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      const report = this.#reload();
      this.#running = report;
      return report;
    });
    return this.#next;
  }

  /** Reloads, but not too often, if a path that no route has could be that of a new RPC of a known package. */
  noteUnknownPath(path: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#unknownAtMs < unknownRpcGapMs) return;
    const name = packageIn(path);
    if (name === undefined || !this.#packages.has(name)) return;
    this.#unknownAtMs = nowMs;
    void this.reload();
  }

  /** Gives up a reload that is under way. */
  close(): void {
    clearTimeout(this.#retry);
    this.#closing.abort();
  }

  #use(sets: readonly Uint8Array[], described: readonly Described[]): void {
    this.#routes = this.#compileRoutes(described);
    this.descriptorSets = sets;
    if (this.server !== undefined) this.server.routes = this.#routes;
    this.services = described.flatMap(({ services }) => services);
    this.omitted = described.flatMap(({ omitted }) => omitted);
    this.#packages = new Set(this.services.map(({ file }) => file.proto.package));
  }

  #retryIfIncomplete(begunAtMs: number): void {
    clearTimeout(this.#retry);
    if (!this.isIncomplete) return this.#backoff.succeeded();
    const untilMs = this.#backoff.failed(begunAtMs);
    this.#retry = setTimeout(() => void this.reload(), Math.max(0, untilMs - performance.now())).unref();
  }

  async #reload(): Promise<ReloadReport> {
    const before = proceduresOf(this.services);
    let isChanged = false;
    let problems: readonly string[] = [];
    try {
      isChanged = await this.load();
      problems = this.problems.flatMap((problem) => problem?.split("\n") ?? []);
    } catch (error) {
      problems = linesOf(error);
    }
    const after = proceduresOf(this.services);
    const added = [...after].filter((name) => !before.has(name));
    const removed = [...before].filter((name) => !after.has(name));
    const report = { added, removed, problems };
    // Nobody may wait for the reload, and what is proxied does not depend on it.
    if (isChanged || problems.length > 0) guardCallback("onReload", this.#options.onReload, this.#report)?.(report);
    return report;
  }

  /** @throws Error with all problems of all descriptors */
  #describe(sets: readonly Uint8Array[]): readonly Described[] {
    const problems: string[] = [];
    const described: Described[] = [];
    for (const [at, upstream] of this.#upstreams.entries()) {
      const set = sets[at] ?? noBytes;
      try {
        described.push(set.byteLength === 0 && this.#upstreams.length > 1 ? nothing : upstream.describe(set));
      } catch (error) {
        problems.push(...linesOf(error).map((line) => `${upstream.connections.authority}: ${line}`));
      }
    }
    const names = described.flatMap(({ services }) => services.map(({ typeName }) => typeName));
    const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
    problems.push(...[...twice].map((name) => `${name} is offered by two upstreams`));
    if (problems.length > 0) throw withCode(new Error(problems.join("\n")), "ERR_DESCRIPTORS");
    return described;
  }
}

/** What is known of an upstream whose descriptors could not be read yet. */
const nothing: Described = { services: [], types: createFileRegistry(), omitted: [] };

/** Returns the package in a path that ends with `/package.Service/Method`, as far as slashes and dots tell. */
function packageIn(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  const start = slash <= 0 ? -1 : path.lastIndexOf("/", slash - 1);
  if (start < 0) return undefined;
  const service = path.slice(start + 1, slash);
  return service.slice(0, Math.max(0, service.lastIndexOf(".")));
}

function proceduresOf(services: readonly DescService[]): ReadonlySet<string> {
  return new Set(services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)));
}

function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
