import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { type FaultReporter, guardCallback, type Routes, type Server } from "@plantstore/gateway/internal/serve";
import { noBytes } from "@plantstore/gateway/exchange";
import { messageOf, withCode } from "@plantstore/gateway/internal/errors";
import { ConnectBackoff } from "../upstreams/index.ts";
import { DescriptorReader, isUnreachable } from "./descriptor-reader.ts";
import type { ServiceDescriptors } from "./descriptors.ts";
import type { OpenUpstream } from "./proxied-upstream.ts";

/** The result of a reload. */
export interface ReloadReport {
  /** Whether the descriptors in use have changed. Their RPCs may be the same. */
  readonly isChanged: boolean;
  /** The RPCs that are newly proxied, as `/package.Service/Method`. */
  readonly added: readonly string[];
  /** The RPCs that are no longer proxied. */
  readonly removed: readonly string[];
  /**
   * Why nothing changed, or why some upstreams keep their previous descriptors; empty if all new descriptors are in use.
   */
  readonly problems: readonly string[];
}

/** The last read of the descriptors of an upstream. */
export interface DescriptorReload {
  /** Why the descriptors could not be read or used, so that the previous ones stay in use; `undefined` on success. */
  readonly problem: string | undefined;
  /** When the descriptors were last read successfully, in ms since 1970; `undefined` if never. */
  readonly lastSuccessMs: number | undefined;
  /** The number of successful reads since the start. */
  readonly successes: number;
  /** The number of reads that failed, or whose descriptors could not be used. */
  readonly failures: number;
}

/** The descriptors of an upstream, and the last read of them. */
export interface KnownDescriptors {
  readonly set: Uint8Array;
  readonly reload: DescriptorReload;
}

/** Options of {@link ProxyTable}. */
interface ProxyTableOptions {
  readonly onReload?: (report: ReloadReport) => void;
}

/**
 * Maximum milliseconds that a slow upstream delays the descriptors of the others. 5 s: most reads take one round trip.
 */
const slowReadMs = 5_000;

/** Minimum milliseconds between two reloads for unknown paths, because any caller can trigger them. 5 s. */
const unknownPathGapMs = 5_000;

/** The services that are proxied, and their {@link Routes}, which a reload replaces atomically. */
export class ProxyTable {
  /** The server whose routes a reload replaces. Calls in flight are not affected. */
  server: Server | undefined;
  services: readonly DescService[] = [];
  /** The services that are not proxied because their descriptors lack a type, with upstream and reason. */
  omitted: readonly string[] = [];
  /** The descriptor set of each upstream; {@link noBytes} if it has not been read yet. */
  descriptorSets: readonly Uint8Array[] = [];
  /** The last reload of each upstream. */
  reloads: readonly DescriptorReload[] = [];
  readonly #upstreams: readonly OpenUpstream[];
  readonly #readers: readonly DescriptorReader[];
  readonly #compileRoutes: (descriptors: readonly ServiceDescriptors[]) => Routes;
  readonly #report: FaultReporter;
  readonly #options: ProxyTableOptions;
  /** The services and types of {@link descriptorSets}. */
  #descriptors: readonly ServiceDescriptors[] = [];
  readonly #closing = new AbortController();
  /** The backoff between attempts to read descriptors. */
  readonly #backoff = new ConnectBackoff();
  #retryTimer: NodeJS.Timeout | undefined;
  /** The packages of the services. */
  #packages: ReadonlySet<string> = new Set();
  /** The first segments of REST templates, such as `v1`. */
  #firstSegments: ReadonlySet<string> = new Set();
  #lastUnknownPathReloadMs = Number.NEGATIVE_INFINITY;
  #routes: Routes | undefined;
  #runningReload: Promise<unknown> = Promise.resolve();
  /** The reload that starts when the running one is done. */
  #nextReload: Promise<ReloadReport> | undefined;

  constructor(
    upstreams: readonly OpenUpstream[],
    compileRoutes: (descriptors: readonly ServiceDescriptors[]) => Routes,
    report: FaultReporter,
    options: ProxyTableOptions,
    known: readonly (KnownDescriptors | undefined)[] = [],
  ) {
    this.#upstreams = upstreams;
    this.descriptorSets = upstreams.map((_, at) => known[at]?.set ?? noBytes);
    this.reloads = upstreams.map((_, at) => known[at]?.reload ?? neverRead);
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

  /**
   * Whether the descriptors of some upstream have not been read yet. An unknown path may then belong to that upstream.
   */
  get isIncomplete(): boolean {
    return this.descriptorSets.includes(noBytes);
  }

  /** Returns the descriptors of an upstream; `undefined` if they have not been read yet. */
  knownOf(isSame: (upstream: OpenUpstream) => boolean): KnownDescriptors | undefined {
    const at = this.#upstreams.findIndex(isSame);
    const [set, reload] = [this.descriptorSets[at], this.reloads[at]];
    return set === undefined || set === noBytes || reload === undefined ? undefined : { set, reload };
  }

  /**
   * Reads the descriptors of all upstreams and uses them. An upstream that cannot be reached keeps its descriptors and
   * is retried with a backoff; at the start, one upstream with descriptors is enough. If any descriptors are invalid, all
   * upstreams keep theirs.
   *
   * @returns whether the descriptors in use have changed. Rejects if this fails before any are in use, or after
   * {@link close}
   */
  async load(): Promise<boolean> {
    const begunAtMs = performance.now();
    const limitMs = this.#upstreams.length > 1 ? slowReadMs : Number.POSITIVE_INFINITY;
    const { signal } = this.#closing;
    const read = await Promise.all(this.#readers.map((reader) => reader.read(signal, limitMs)));
    // A custom source may resolve although the signal is aborted.
    signal.throwIfAborted();
    clearTimeout(this.#retryTimer);
    const errors = read.filter((each) => each instanceof Error);
    const invalid = errors.find((error) => !isUnreachable(error));
    const previousSets = this.descriptorSets;
    const hasDescriptors = errors.length < read.length || previousSets.some((set) => set !== noBytes);
    const fatalError = invalid ?? (hasDescriptors ? undefined : errors[0]);
    if (fatalError !== undefined && this.#routes === undefined) throw fatalError;
    const descriptorSets = read.map((each, at) => (each instanceof Error ? (previousSets[at] ?? noBytes) : each));
    const isChanged = descriptorSets.map((set, at) => isDifferent(set, previousSets[at] ?? noBytes));
    const hasChanges = this.#routes === undefined || isChanged.includes(true);
    const problem = hasChanges ? await this.#useIfValid(descriptorSets) : undefined;
    signal.throwIfAborted();
    const problems = isChanged.map((each) => (each ? problem : undefined));
    this.#record(read.map((each, at) => (each instanceof Error ? messageOf(each) : problems[at])));
    if (errors.length > 0) this.#retry(begunAtMs);
    else this.#backoff.succeeded();
    return hasChanges && problem === undefined;
  }

  /** Reloads, after the running reload if there is one. Never rejects. */
  reload(): Promise<ReloadReport> {
    this.#nextReload ??= this.#runningReload.then(() => {
      this.#nextReload = undefined;
      const report = this.#reload();
      this.#runningReload = report;
      return report;
    });
    return this.#nextReload;
  }

  /**
   * Reloads, at a limited rate, if an unknown path may belong to a new RPC: it names a known package, or starts with
   * the first segment of a REST route. Other unknown paths come from browsers and scanners.
   */
  noteUnknownPath(path: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastUnknownPathReloadMs < unknownPathGapMs) return;
    const name = packageIn(path);
    const isOfPackage = name !== undefined && this.#packages.has(name);
    if (!isOfPackage && !this.#firstSegments.has(firstSegmentOf(path, this.routes.prefix))) return;
    this.#lastUnknownPathReloadMs = nowMs;
    void this.reload();
  }

  /** Aborts a running reload. */
  close(): void {
    clearTimeout(this.#retryTimer);
    this.#closing.abort();
  }

  /** Uses these descriptors, or returns why the current ones stay in use. Rejects if none are in use yet. */
  async #useIfValid(descriptorSets: readonly Uint8Array[]): Promise<string | undefined> {
    try {
      const descriptors = await this.#describe(descriptorSets);
      // Another table may have replaced this one meanwhile, and its routes are in use.
      this.#closing.signal.throwIfAborted();
      this.#use(descriptorSets, descriptors);
      return undefined;
    } catch (error) {
      if (this.#routes === undefined) throw error;
      return messageOf(error);
    }
  }

  #use(descriptorSets: readonly Uint8Array[], descriptors: readonly ServiceDescriptors[]): void {
    this.#routes = this.#compileRoutes(descriptors);
    this.descriptorSets = descriptorSets;
    this.#descriptors = descriptors;
    if (this.server !== undefined) this.server.routes = this.#routes;
    this.services = descriptors.flatMap(({ services }) => services);
    this.omitted = descriptors.flatMap(({ omitted }, at) => this.#withAuthority(at, [...omitted.values()]));
    this.#packages = new Set(this.services.map(({ file }) => file.proto.package));
    const firstSegments = this.#routes.rest.bindings.map(({ template }) => template.segments[0]);
    this.#firstSegments = new Set(firstSegments.flatMap((each) => (each?.kind === "literal" ? [each.text] : [])));
  }

  #record(problems: readonly (string | undefined)[]): void {
    const nowMs = Date.now();
    this.reloads = problems.map((problem, at) => {
      const { lastSuccessMs, successes = 0, failures = 0 } = this.reloads[at] ?? {};
      return problem === undefined
        ? { problem, lastSuccessMs: nowMs, successes: successes + 1, failures }
        : { problem, lastSuccessMs, successes, failures: failures + 1 };
    });
  }

  #retry(begunAtMs: number): void {
    const retryAtMs = this.#backoff.failed(begunAtMs);
    this.#retryTimer = setTimeout(() => void this.reload(), Math.max(0, retryAtMs - performance.now())).unref();
  }

  async #reload(): Promise<ReloadReport> {
    const proceduresBefore = proceduresOf(this.services);
    const hadProblem = this.reloads.some(({ problem }) => problem !== undefined);
    let isChanged = false;
    let problems: readonly string[] = [];
    try {
      isChanged = await this.load();
      // If several upstreams have the same problem, it is reported once.
      problems = [...new Set(this.reloads.flatMap(({ problem }) => problem?.split("\n") ?? []))];
    } catch (error) {
      problems = linesOf(error);
    }
    const proceduresAfter = proceduresOf(this.services);
    const added = [...proceduresAfter].filter((name) => !proceduresBefore.has(name));
    const removed = [...proceduresBefore].filter((name) => !proceduresAfter.has(name));
    const report = { isChanged, added, removed, problems };
    const isReportable = isChanged || hadProblem || problems.length > 0;
    // An error thrown by onReload must not make the reload fail.
    if (isReportable && !this.#closing.signal.aborted)
      guardCallback("onReload", this.#options.onReload, this.#report)?.(report);
    return report;
  }

  /** Rejects with an Error that lists the problems of all upstreams. */
  async #describe(descriptorSets: readonly Uint8Array[]): Promise<readonly ServiceDescriptors[]> {
    const problems: string[] = [];
    const descriptors: ServiceDescriptors[] = [];
    for (const [at, upstream] of this.#upstreams.entries()) {
      const set = descriptorSets[at] ?? noBytes;
      try {
        const each = set === noBytes && this.#upstreams.length > 1 ? noServices : await upstream.describe(set);
        descriptors.push(each);
        problems.push(...this.#withAuthority(at, servicesLosingTypes(this.#descriptors[at], each)));
      } catch (error) {
        problems.push(...this.#withAuthority(at, linesOf(error)));
      }
    }
    const names = descriptors.flatMap(({ services }) => services.map(({ typeName }) => typeName));
    const seen = new Set<string>();
    const duplicates = new Set(names.filter((name) => seen.size === seen.add(name).size));
    problems.push(...[...duplicates].map((name) => `${name} is served by two upstreams`));
    if (problems.length > 0) throw withCode(new Error(problems.join("\n")), "ERR_DESCRIPTORS");
    return descriptors;
  }

  #withAuthority(at: number, lines: readonly string[]): readonly string[] {
    return lines.map((line) => `${this.#upstreams[at]?.connections.authority}: ${line}`);
  }
}

const neverRead: DescriptorReload = { problem: undefined, lastSuccessMs: undefined, successes: 0, failures: 0 };

/** The services of an upstream whose descriptors have not been read yet: none. */
const noServices: ServiceDescriptors = { services: [], types: createFileRegistry(), omitted: new Map() };

/**
 * Returns why services that are served now would be omitted because their new descriptors lack a type. Services that
 * the upstream no longer lists are not included.
 */
function servicesLosingTypes(
  before: ServiceDescriptors | undefined,
  { omitted }: ServiceDescriptors,
): readonly string[] {
  const served = new Set(before?.services.map(({ typeName }) => typeName));
  return [...omitted].filter(([name]) => served.has(name)).map(([, reason]) => reason);
}

/** Returns whether a set differs from the one in use, which is {@link noBytes} if the upstream was never read. */
function isDifferent(set: Uint8Array, inUse: Uint8Array): boolean {
  return inUse === noBytes ? set !== noBytes : Buffer.compare(set, inUse) !== 0;
}

/** Returns the package named in a path that ends with `/package.Service/Method`. */
function packageIn(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  const start = slash <= 0 ? -1 : path.lastIndexOf("/", slash - 1);
  if (start < 0) return undefined;
  const service = path.slice(start + 1, slash);
  return service.slice(0, Math.max(0, service.lastIndexOf(".")));
}

/** Returns the first segment of a path after the prefix, without a verb. */
function firstSegmentOf(path: string, prefix: string): string {
  return /^[^/:]*/.exec(path.startsWith(prefix) ? path.slice(prefix.length + 1) : "")?.[0] ?? "";
}

function proceduresOf(services: readonly DescService[]): ReadonlySet<string> {
  return new Set(services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)));
}

function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
