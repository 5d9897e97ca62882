import { isDeepStrictEqual } from "node:util";
import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { procedureOf, type RestOptions } from "@plantstore/protocols";
import { type CurrentServer, type FaultReporter, guardCallback, type Routes } from "@plantstore/serve";
import { noBytes, runInTurns, messageOf, toShortLine, withCode } from "@plantstore/http";
import { ConnectBackoff } from "../upstreams/index.ts";
import { DescriptorReader, isUnreachable, type ReadDescriptors, toError } from "./descriptor-reader.ts";
import { readAll } from "./read-all.ts";
import type { ServiceDescriptors } from "./descriptors.ts";
import type { ProxiedUpstream } from "./proxied-upstream.ts";
import type { DescriptorReload, ReloadReport } from "./reload-report.ts";
import { UnknownPaths } from "./unknown-paths.ts";

/** An upstream's descriptors, and the result from their last reload. */
export interface KnownDescriptors {
  readonly set: Uint8Array;
  readonly reload: DescriptorReload;
}

/** The routes for some descriptors. */
export interface CompiledTable {
  readonly routes: Routes;
  /** The REST options without the routes that belong to other upstreams. */
  readonly rest: RestOptions;
  /** The services that each upstream serves. */
  readonly services: readonly (readonly DescService[])[];
  /** The services and RPCs that the option `visibility` hides, by full name. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. Empty without the option `visibility`. */
  readonly visibilityLabels: ReadonlySet<string>;
  /** Each upstream's conflicts, as in {@link DescriptorReload}. */
  readonly conflicts: readonly (readonly string[])[];
}

/** An upstream's descriptors, from which the routes are compiled. */
export interface UpstreamDescriptors extends ServiceDescriptors {
  /** Whether the upstream has never been reached, so that its services and routes are unknown. */
  readonly isUnknown: boolean;
}

/** Options for {@link ProxyTable}. */
interface ProxyTableOptions {
  readonly onReload?: (report: ReloadReport) => void;
}

/** The proxied services and their {@link Routes}. A reload replaces the routes atomically. */
export class ProxyTable {
  /** The server whose routes a reload replaces. Calls in flight are not affected. */
  current: CurrentServer | undefined;
  services: readonly DescService[] = [];
  /** One message, with the upstream's name, for each service that is not proxied because a type is missing. */
  omitted: readonly string[] = [];
  /** Each upstream's descriptor set, or {@link noBytes} if no set has been used yet. */
  descriptorSets: readonly Uint8Array[];
  /** Each upstream's last reload. */
  reloads: readonly DescriptorReload[];
  readonly #upstreams: readonly ProxiedUpstream[];
  readonly #readers: readonly DescriptorReader[];
  readonly #compile: (descriptors: readonly UpstreamDescriptors[]) => Iterator<void, CompiledTable>;
  readonly #report: FaultReporter;
  readonly #options: ProxyTableOptions;
  /** The services and types in {@link descriptorSets}. */
  #descriptors: readonly UpstreamDescriptors[];
  readonly #closing = new AbortController();
  /** The backoff between attempts to read descriptors. */
  readonly #backoff = new ConnectBackoff();
  #retryTimer: NodeJS.Timeout | undefined;
  readonly #unknownPaths = new UnknownPaths();
  #compiled: CompiledTable | undefined;
  #runningReload: Promise<unknown> = Promise.resolve();
  /** The reload that starts when the running reload is done. */
  #nextReload: Promise<ReloadReport> | undefined;

  constructor(
    upstreams: readonly ProxiedUpstream[],
    compile: (descriptors: readonly UpstreamDescriptors[]) => Iterator<void, CompiledTable>,
    report: FaultReporter,
    options: ProxyTableOptions,
  ) {
    this.#upstreams = upstreams;
    this.descriptorSets = upstreams.map(() => noBytes);
    this.#descriptors = upstreams.map(() => noServices);
    this.reloads = upstreams.map(() => initialReload);
    this.#readers = upstreams.map(
      (upstream, at) =>
        new DescriptorReader(
          (signal) => upstream.readDescriptors(signal),
          (set) => this.#describe(at, set),
          () => {
            if (!this.#closing.signal.aborted) void this.reload();
          },
        ),
    );
    this.#compile = compile;
    this.#report = report;
    this.#options = options;
  }

  /** The routes in use, and their REST options and services. Throws before the first {@link load}. */
  get inUse(): CompiledTable {
    if (this.#compiled === undefined) throw new TypeError("no descriptors are loaded");
    return this.#compiled;
  }

  /** Whether some upstream's descriptors have not been read yet. An unknown path may belong to such an upstream. */
  get isIncomplete(): boolean {
    return this.descriptorSets.includes(noBytes);
  }

  /**
   * Returns an upstream's descriptors, or `undefined` if they have not been read yet.
   *
   * @param conditions - the first condition that an upstream fulfils selects the upstream
   */
  knownOf(conditions: readonly ((upstream: ProxiedUpstream) => boolean)[]): KnownDescriptors | undefined {
    let index = -1;
    for (const isSelected of conditions) if (index < 0) index = this.#upstreams.findIndex(isSelected);
    const [set, reload] = [this.descriptorSets[index], this.reloads[index]];
    return set === undefined || set === noBytes || reload === undefined ? undefined : { set, reload };
  }

  /**
   * Reads the descriptors of all upstreams for the first time. Succeeds if at least one upstream has descriptors, and
   * all descriptors from the operator are valid.
   *
   * @param findKnown - returns an upstream's earlier descriptors from the same address. Called if its descriptors
   * cannot be read or used
   * @returns a promise that rejects if descriptors are invalid or missing, or after {@link close}
   */
  load(findKnown: FindKnown = () => undefined): Promise<unknown> {
    const loading = this.#load(findKnown);
    // If a watch requests a reload during this load, the reload starts after the load.
    this.#runningReload = loading.catch(() => undefined);
    return loading;
  }

  /**
   * Reads the descriptors of all upstreams. Each upstream uses its new descriptors if they are valid, and otherwise
   * keeps its previous descriptors. An upstream that cannot be reached is retried with a backoff.
   *
   * @returns whether the descriptors in use have changed. Rejects if the first load fails, or after {@link close}
   */
  async #load(findKnown?: FindKnown): Promise<boolean> {
    const begunAtMs = performance.now();
    const read = await readAll(this.#readers, this.#closing.signal, this.#compiled === undefined);
    // A custom source may ignore the signal and resolve after the abort.
    this.#closing.signal.throwIfAborted();
    clearTimeout(this.#retryTimer);
    const before = this.#compiled;
    const problems = await this.#useEach(read);
    if (findKnown !== undefined) {
      await this.#requireStart(problems, findKnown);
      this.reloads = this.reloads.map((reload, at) => findKnown(at)?.reload ?? reload);
    }
    this.#record(problems);
    if (read.some((each) => each instanceof Error)) this.#retry(begunAtMs);
    else this.#backoff.succeeded();
    return this.#compiled !== before;
  }

  /** Reloads the descriptors, after the running reload if there is one. Never rejects. */
  reload(): Promise<ReloadReport> {
    this.#nextReload ??= this.#runningReload.then(() => {
      this.#nextReload = undefined;
      const report = this.#reload();
      this.#runningReload = report;
      return report;
    });
    return this.#nextReload;
  }

  /** Reloads the descriptors, at a limited rate, if an unknown path may belong to a new RPC. */
  noteUnknownPath(path: string): void {
    if (this.#unknownPaths.mayBeNew(path)) void this.reload();
  }

  /** Aborts a running reload. */
  close(): void {
    clearTimeout(this.#retryTimer);
    this.#closing.abort();
  }

  /** Uses each upstream's new descriptors. If they cannot be used, returns the error and keeps the previous ones. */
  async #useEach(read: readonly (ReadDescriptors | Error)[]): Promise<(Error | undefined)[]> {
    const described = new Map<number, Described>();
    const problems = read.map((each, at) => {
      if (!(each instanceof Error)) return this.#accept(described, at, each);
      // Any error leaves the routes unknown, even an error response, which a load balancer may have sent.
      this.#setUnknown(described, at, this.descriptorSets[at] === noBytes);
      return each;
    });
    // Stops if another table has replaced this table.
    this.#closing.signal.throwIfAborted();
    if (described.size === 0 && this.#compiled !== undefined) return problems;
    const problem = await this.#use(described);
    if (problem === undefined) return problems;
    // An error in one upstream's descriptors must not prevent another upstream's reload.
    for (const [at, one] of described) {
      const own = described.size === 1 ? problem : await this.#use(new Map([[at, one]]));
      problems[at] ??= own;
    }
    return problems;
  }

  /** Records whether an upstream's services and routes are unknown. */
  #setUnknown(described: Map<number, Described>, at: number, isUnknown: boolean): void {
    const previous = this.#descriptors[at] ?? noServices;
    if (previous.isUnknown !== isUnknown) described.set(at, { set: noBytes, descriptors: { ...previous, isUnknown } });
  }

  /** Describes a descriptor set, unless the set is in use. Never rejects. */
  async #describe(at: number, set: Uint8Array): Promise<ReadDescriptors> {
    if (!isDifferent(set, this.descriptorSets[at] ?? noBytes)) return { set, descriptors: undefined };
    try {
      return { set, descriptors: await this.#upstreams[at]?.describe(set) };
    } catch (error) {
      return { set, descriptors: toError(error) };
    }
  }

  /** Adds usable descriptors to `described`. Returns an error if they are invalid, or lack a served service's types. */
  #accept(described: Map<number, Described>, at: number, { set, descriptors }: ReadDescriptors): Error | undefined {
    if (descriptors === undefined) return undefined;
    const problems =
      descriptors instanceof Error ? linesOf(descriptors) : servicesLosingTypes(this.#descriptors[at], descriptors);
    if (!(descriptors instanceof Error) && problems.length === 0) {
      described.set(at, { set, descriptors: { ...descriptors, isUnknown: false } });
      return undefined;
    }
    // A server that sends descriptors has been reached, even if the descriptors cannot be used.
    this.#setUnknown(described, at, false);
    return withCode(new Error(this.#withName(at, problems).join("\n")), "ERR_DESCRIPTORS");
  }

  /**
   * Compiles routes from some upstreams' new descriptors and uses the routes, or returns an error. Rejects after
   * {@link close}.
   */
  async #use(described: ReadonlyMap<number, Described>): Promise<Error | undefined> {
    const descriptors = this.#descriptors.map((previous, at) => described.get(at)?.descriptors ?? previous);
    let compiled: CompiledTable;
    try {
      compiled = await runInTurns(this.#compile(descriptors));
    } catch (error) {
      return toError(error);
    }
    this.#closing.signal.throwIfAborted();
    this.#compiled = compiled;
    this.descriptorSets = this.descriptorSets.map((previous, at) => described.get(at)?.set ?? previous);
    this.#descriptors = descriptors;
    const { routes, services } = this.#compiled;
    if (this.current !== undefined) this.current.server = { ...this.current.server, routes };
    this.services = services.flat();
    this.omitted = descriptors.flatMap(({ omitted }, at) => this.#withName(at, [...omitted.values()]));
    this.#unknownPaths.setKnown(this.services, routes);
    return undefined;
  }

  /**
   * Uses the descriptors from `findKnown` for upstreams whose new descriptors could not be read or used.
   *
   * Rejects if descriptors from `findKnown` or from the operator cannot be used, or if no upstream has descriptors.
   */
  async #requireStart(problems: readonly (Error | undefined)[], findKnown: FindKnown): Promise<void> {
    const fatal = problems.filter((problem, at): problem is Error => {
      const isOfOperator = this.#upstreams[at]?.isReflected === false;
      return isOfOperator && problem !== undefined && !isUnreachable(problem);
    });
    for (const at of this.#upstreams.keys()) {
      const known = this.descriptorSets[at] === noBytes ? findKnown(at) : undefined;
      if (known === undefined) continue;
      const described = new Map<number, Described>();
      const problem = this.#accept(described, at, await this.#describe(at, known.set));
      this.#closing.signal.throwIfAborted();
      const failure = problem ?? (await this.#use(described));
      if (failure !== undefined) fatal.push(failure);
    }
    const failures = problems.filter((problem) => problem !== undefined);
    if (this.descriptorSets.every((set) => set === noBytes))
      fatal.push(...failures.filter((problem) => !isUnreachable(problem)), ...failures);
    const distinct = [...new Map(fatal.map((each) => [each.message, each])).values()];
    const [first, second] = distinct;
    if (first === undefined) return;
    if (second === undefined || isUnreachable(second)) throw first;
    throw withCode(new Error(distinct.map(messageOf).join("\n")), "ERR_DESCRIPTORS");
  }

  #record(problems: readonly (Error | undefined)[]): void {
    const nowMs = Date.now();
    this.reloads = problems.map((error, at) => {
      const { lastSuccessMs, successes = 0, failures = 0 } = this.reloads[at] ?? {};
      const services = (this.#compiled?.services[at] ?? []).map(({ typeName }) => typeName);
      const offered = { conflicts: this.#conflictsOf(at), services };
      return error === undefined
        ? { problem: undefined, lastSuccessMs: nowMs, successes: successes + 1, failures, ...offered }
        : { problem: messageOf(error), lastSuccessMs, successes, failures: failures + 1, ...offered };
    });
  }

  #conflictsOf(at: number): readonly string[] {
    const foreign = [...(this.#upstreams[at]?.foreignServices ?? [])].map(([service, owner]) => {
      return `service ${toShortLine(service)} belongs to ${this.#upstreams[owner]?.connections.name}`;
    });
    return [...foreign, ...(this.#compiled?.conflicts[at] ?? [])];
  }

  #retry(begunAtMs: number): void {
    const retryAtMs = this.#backoff.failed(begunAtMs);
    this.#retryTimer = setTimeout(() => void this.reload(), Math.max(0, retryAtMs - performance.now())).unref();
  }

  async #reload(): Promise<ReloadReport> {
    const proceduresBefore = proceduresOf(this.services);
    const hadProblem = this.reloads.some(({ problem }) => problem !== undefined);
    const conflictsBefore = this.reloads.map(({ conflicts }) => conflicts);
    let isChanged = false;
    let problems: readonly string[] = [];
    try {
      isChanged = await this.#load();
      // A problem that several upstreams have is reported once.
      problems = [...new Set(this.reloads.flatMap(({ problem }) => problem?.split("\n") ?? []))];
    } catch (error) {
      problems = linesOf(error);
    }
    const proceduresAfter = proceduresOf(this.services);
    const added = [...proceduresAfter].filter((name) => !proceduresBefore.has(name));
    const removed = [...proceduresBefore].filter((name) => !proceduresAfter.has(name));
    const report = { isChanged, added, removed, problems };
    const hasNewConflicts = !isDeepStrictEqual(
      this.reloads.map(({ conflicts }) => conflicts),
      conflictsBefore,
    );
    const isReportable = isChanged || hadProblem || hasNewConflicts || problems.length > 0;
    // An error thrown by onReload must not make the reload fail.
    if (isReportable && !this.#closing.signal.aborted)
      guardCallback("onReload", this.#options.onReload, this.#report)?.(report);
    return report;
  }

  #withName(at: number, lines: readonly string[]): readonly string[] {
    return lines.map((line) => `${this.#upstreams[at]?.connections.name}: ${line}`);
  }
}

/** Returns the earlier descriptors for the upstream with an index, or `undefined` if no descriptors are known. */
type FindKnown = (at: number) => KnownDescriptors | undefined;

/** An upstream's descriptors that are used if the routes can be compiled. */
interface Described {
  readonly set: Uint8Array;
  readonly descriptors: UpstreamDescriptors;
}

const initialReload: DescriptorReload = {
  problem: undefined,
  lastSuccessMs: undefined,
  successes: 0,
  failures: 0,
  conflicts: [],
  services: [],
};

/** An upstream without descriptors has no services. */
const noServices: UpstreamDescriptors = {
  services: [],
  types: createFileRegistry(),
  omitted: new Map(),
  restricted: new Set(),
  hiddenRpcs: new Set(),
  labels: new Set(),
  isUnknown: false,
};

/**
 * Returns a message for each served service whose new descriptors lack a type. Services that the upstream no longer
 * lists are not included.
 */
function servicesLosingTypes(
  before: ServiceDescriptors | undefined,
  { omitted }: ServiceDescriptors,
): readonly string[] {
  const served = new Set(before?.services.map(({ typeName }) => typeName));
  return [...omitted].filter(([name]) => served.has(name)).map(([, reason]) => reason);
}

/** Returns whether a set differs from the set in use, which is {@link noBytes} before the first read. */
function isDifferent(set: Uint8Array, inUse: Uint8Array): boolean {
  return inUse === noBytes ? set !== noBytes : Buffer.compare(set, inUse) !== 0;
}

function proceduresOf(services: readonly DescService[]): ReadonlySet<string> {
  return new Set(services.flatMap(({ methods }) => methods.map(procedureOf)));
}

function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
