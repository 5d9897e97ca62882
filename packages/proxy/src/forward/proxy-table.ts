import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { type FaultReporter, guardCallback, type Routes, type Server } from "@plantstore/gateway/internal/serve";
import { noBytes } from "@plantstore/gateway/exchange";
import { messageOf, withCode } from "@plantstore/gateway/internal/errors";
import { ConnectBackoff } from "../upstreams/index.ts";
import { DescriptorReader, isUnreachable } from "./descriptor-reader.ts";
import type { Described } from "./descriptors.ts";
import type { OpenUpstream } from "./proxied-upstream.ts";

/** What a reload has changed. */
export interface ReloadReport {
  /** Whether other descriptors than before are in use; they may have the same RPCs. */
  readonly isChanged: boolean;
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

/** How the descriptors of an upstream were read the last time. */
export interface DescriptorReload {
  /** Why they could not be read or used, so that those before stay in use; `undefined` if they are in use. */
  readonly problem: string | undefined;
  /** When they were last read and found to be in use or put in use, in ms since 1970; `undefined` if never. */
  readonly lastSuccessMs: number | undefined;
}

/** Options of {@link ProxyTable}. */
interface ProxyTableOptions {
  readonly onReload?: (report: ReloadReport) => void;
}

/** Milliseconds that the descriptors of one of several upstreams may hold up the others. 5 s: most need one round trip. */
const slowReadMs = 5_000;

/** Milliseconds at least between two reloads because of unknown paths: anybody can ask for one. 5 s. */
const unknownPathGapMs = 5_000;

/** The services that are proxied, and the {@link Routes} to them, which a reload replaces as a whole. */
export class ProxyTable {
  /** The server whose routes a reload replaces; calls in flight keep their target. */
  server: Server | undefined;
  services: readonly DescService[] = [];
  /** The services that are not proxied because their descriptors have a hole, with upstream and reason. */
  omitted: readonly string[] = [];
  /** What the services were read from, for each upstream; empty for one that could not be read yet. */
  descriptorSets: readonly Uint8Array[] = [];
  /** How the last reload of each upstream went. */
  reloads: readonly DescriptorReload[] = [];
  readonly #upstreams: readonly OpenUpstream[];
  readonly #readers: readonly DescriptorReader[];
  readonly #compileRoutes: (described: readonly Described[]) => Routes;
  readonly #report: FaultReporter;
  readonly #options: ProxyTableOptions;
  /** What the services were read from, described. */
  #described: readonly Described[] = [];
  readonly #closing = new AbortController();
  /** Of descriptors that could not be read. */
  readonly #backoff = new ConnectBackoff();
  #retryTimer: NodeJS.Timeout | undefined;
  /** The packages of the services. */
  #packages: ReadonlySet<string> = new Set();
  /** What the templates of REST begin with, such as `v1`. */
  #firstSegments: ReadonlySet<string> = new Set();
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
    return this.descriptorSets.includes(noBytes);
  }

  /**
   * Reads the descriptors and puts them in use. Upstreams that cannot be read keep what they had, and are tried again,
   * with a back-off; at the start, it is enough that some of several can, and the others cannot be reached. If what was
   * read cannot be used, all keep what they had.
   *
   * @returns whether others than before are in use; rejects if there is nothing to use yet, or once this is closed
   */
  async load(): Promise<boolean> {
    const begunAtMs = performance.now();
    const limitMs = this.#upstreams.length > 1 ? slowReadMs : Number.POSITIVE_INFINITY;
    const { signal } = this.#closing;
    const read = await Promise.all(this.#readers.map((reader) => reader.read(signal, limitMs)));
    // A source of the program's own may know of no signal.
    signal.throwIfAborted();
    clearTimeout(this.#retryTimer);
    const errors = read.filter((each) => each instanceof Error);
    const wrong = errors.find((error) => !isUnreachable(error));
    const fatal = wrong ?? (errors.length === read.length ? errors[0] : undefined);
    if (fatal !== undefined && this.#routes === undefined) throw fatal;
    const before = this.descriptorSets;
    const sets = read.map((each, at) => (each instanceof Error ? (before[at] ?? noBytes) : each));
    const isOther = sets.map((set, at) => isDifferent(set, before[at] ?? noBytes));
    const hasOther = this.#routes === undefined || isOther.includes(true);
    const refusal = hasOther ? this.#useIfValid(sets) : undefined;
    const refusals = isOther.map((isRefused) => (isRefused ? refusal : undefined));
    this.#record(read.map((each, at) => (each instanceof Error ? messageOf(each) : refusals[at])));
    if (errors.length > 0) this.#retry(begunAtMs);
    else this.#backoff.succeeded();
    return hasOther && refusal === undefined;
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

  /**
   * Reloads, but not too often, if a path that no route has could be that of a new RPC: one of a known package, or one on
   * REST whose path begins as that of a known one. Others are those of browsers and scanners, which never stop.
   */
  noteUnknownPath(path: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#unknownAtMs < unknownPathGapMs) return;
    const name = packageIn(path);
    const isOfPackage = name !== undefined && this.#packages.has(name);
    if (!isOfPackage && !this.#firstSegments.has(firstSegmentOf(path, this.routes.prefix))) return;
    this.#unknownAtMs = nowMs;
    void this.reload();
  }

  /** Gives up a reload that is under way. */
  close(): void {
    clearTimeout(this.#retryTimer);
    this.#closing.abort();
  }

  /** Uses other descriptors, or returns why those in use stay. Throws if there are none. */
  #useIfValid(sets: readonly Uint8Array[]): string | undefined {
    try {
      this.#use(sets, this.#describe(sets));
      return undefined;
    } catch (error) {
      if (this.#routes === undefined) throw error;
      return messageOf(error);
    }
  }

  #use(sets: readonly Uint8Array[], described: readonly Described[]): void {
    this.#routes = this.#compileRoutes(described);
    this.descriptorSets = sets;
    this.#described = described;
    if (this.server !== undefined) this.server.routes = this.#routes;
    this.services = described.flatMap(({ services }) => services);
    this.omitted = described.flatMap(({ omitted }, at) => this.#withAuthority(at, [...omitted.values()]));
    this.#packages = new Set(this.services.map(({ file }) => file.proto.package));
    const firstSegments = this.#routes.rest.bindings.map(({ template }) => template.segments[0]);
    this.#firstSegments = new Set(firstSegments.flatMap((each) => (each?.kind === "literal" ? [each.text] : [])));
  }

  #record(problems: readonly (string | undefined)[]): void {
    const nowMs = Date.now();
    this.reloads = problems.map((problem, at) => ({
      problem,
      lastSuccessMs: problem === undefined ? nowMs : this.reloads[at]?.lastSuccessMs,
    }));
  }

  #retry(begunAtMs: number): void {
    const untilMs = this.#backoff.failed(begunAtMs);
    this.#retryTimer = setTimeout(() => void this.reload(), Math.max(0, untilMs - performance.now())).unref();
  }

  async #reload(): Promise<ReloadReport> {
    const before = proceduresOf(this.services);
    const hadProblem = this.reloads.some(({ problem }) => problem !== undefined);
    let isChanged = false;
    let problems: readonly string[] = [];
    try {
      isChanged = await this.load();
      // What keeps several from being used is the problem of each.
      problems = [...new Set(this.reloads.flatMap(({ problem }) => problem?.split("\n") ?? []))];
    } catch (error) {
      problems = linesOf(error);
    }
    const after = proceduresOf(this.services);
    const added = [...after].filter((name) => !before.has(name));
    const removed = [...before].filter((name) => !after.has(name));
    const report = { isChanged, added, removed, problems };
    const isNews = isChanged || hadProblem || problems.length > 0;
    // Nobody may wait for the reload, and what is proxied does not depend on it.
    if (isNews && !this.#closing.signal.aborted)
      guardCallback("onReload", this.#options.onReload, this.#report)?.(report);
    return report;
  }

  /** @throws Error with all problems of all descriptors */
  #describe(sets: readonly Uint8Array[]): readonly Described[] {
    const problems: string[] = [];
    const described: Described[] = [];
    for (const [at, upstream] of this.#upstreams.entries()) {
      const set = sets[at] ?? noBytes;
      try {
        const each = set === noBytes && this.#upstreams.length > 1 ? nothing : upstream.describe(set);
        described.push(each);
        problems.push(...this.#withAuthority(at, lostServices(this.#described[at], each)));
      } catch (error) {
        problems.push(...this.#withAuthority(at, linesOf(error)));
      }
    }
    const names = described.flatMap(({ services }) => services.map(({ typeName }) => typeName));
    const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
    problems.push(...[...twice].map((name) => `${name} is offered by two upstreams`));
    if (problems.length > 0) throw withCode(new Error(problems.join("\n")), "ERR_DESCRIPTORS");
    return described;
  }

  #withAuthority(at: number, lines: readonly string[]): readonly string[] {
    return lines.map((line) => `${this.#upstreams[at]?.connections.authority}: ${line}`);
  }
}

/** What is known of an upstream whose descriptors could not be read yet. */
const nothing: Described = { services: [], types: createFileRegistry(), omitted: new Map() };

/**
 * Returns why services that are served would be left out, although the upstream still offers them: what it says of them
 * has a hole by now. Services that it no longer offers are not among these.
 */
function lostServices(before: Described | undefined, { omitted }: Described): readonly string[] {
  const served = new Set(before?.services.map(({ typeName }) => typeName));
  return [...omitted].filter(([name]) => served.has(name)).map(([, reason]) => reason);
}

/** Returns whether a set is other than the one in use. The set of an upstream that was never read is {@link noBytes} itself. */
function isDifferent(set: Uint8Array, inUse: Uint8Array): boolean {
  return inUse === noBytes ? set !== noBytes : Buffer.compare(set, inUse) !== 0;
}

/** Returns the package in a path that ends with `/package.Service/Method`, as far as slashes and dots tell. */
function packageIn(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  const start = slash <= 0 ? -1 : path.lastIndexOf("/", slash - 1);
  if (start < 0) return undefined;
  const service = path.slice(start + 1, slash);
  return service.slice(0, Math.max(0, service.lastIndexOf(".")));
}

/** Returns the first segment of a path below the prefix, without a verb. */
function firstSegmentOf(path: string, prefix: string): string {
  return /^[^/:]*/.exec(path.startsWith(prefix) ? path.slice(prefix.length + 1) : "")?.[0] ?? "";
}

function proceduresOf(services: readonly DescService[]): ReadonlySet<string> {
  return new Set(services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)));
}

function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
