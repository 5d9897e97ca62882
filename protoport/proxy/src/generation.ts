import { isDeepStrictEqual } from "node:util";
import { createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { createNodeServer, type Server, type FaultReporter } from "@protoport/gateway/forward";
import { messageOf, toShortLine, withCode } from "@protoport/gateway/errors";
import type { GatewayOptions } from "@protoport/gateway";
import { noBytes, runInTurns } from "@protoport/gateway/exchange";
import { procedureOf } from "@protoport/gateway/rest";
import type { CompiledProxy } from "./compile-proxy.ts";
import {
  DescriptorReader,
  type DescriptorReload,
  isUnreachable,
  type ProxiedUpstream,
  readAll,
  type ReadDescriptors,
  type ReloadReport,
  type ServiceDescriptors,
  toError,
  type UpstreamDescriptors,
} from "./forward/index.ts";

/** The parts that a proxy opens from its options. A reload keeps these parts, and `reconfigure` replaces all of them. */
export interface OpenedOptions {
  readonly options: Omit<GatewayOptions, "routes"> & { readonly onReload?: (report: ReloadReport) => void };
  readonly report: FaultReporter;
  readonly upstreams: readonly ProxiedUpstream[];
  readonly compile: (offers: readonly Offer[]) => Iterator<void, CompiledProxy>;
}

/** The {@link OpenedOptions}, with the readers of the upstreams' descriptors. */
export interface Opened extends OpenedOptions {
  readonly readers: readonly DescriptorReader[];
  /** Aborts when other options replace these options, or when the proxy closes. Ends reads and watches. */
  readonly closing: AbortController;
}

/** The services that an upstream offers. */
export interface Offer {
  /** The descriptor set, or {@link noBytes} if no set has been used yet. */
  readonly set: Uint8Array;
  readonly descriptors: UpstreamDescriptors;
}

/**
 * Options, descriptors and routes that are in use together. A reload and `reconfigure` replace the generation and never
 * change it, and a call keeps the routes of the generation in which it started.
 */
export interface Generation {
  readonly opened: Opened;
  readonly offers: readonly Offer[];
  readonly compiled: CompiledProxy;
  readonly server: Server;
  readonly services: readonly DescService[];
  /** One message, with the upstream's name, for each service that is not proxied because a type is missing. */
  readonly omitted: readonly string[];
  readonly descriptorSets: readonly Uint8Array[];
  readonly descriptorReloads: readonly DescriptorReload[];
  /** Time in milliseconds at which the read of the descriptors began, or `undefined` if all descriptors were read. */
  readonly unreadSinceMs: number | undefined;
}

/**
 * Reads the descriptors of all upstreams, and creates the next generation. An upstream whose new descriptors cannot be
 * read or used keeps its descriptors of the last generation. After `reconfigure`, these are the descriptors from the
 * same address.
 *
 * @param last - returns the generation in use, which a concurrent reload may replace during the read
 * @returns a promise that rejects if the options' own descriptors cannot be used, if no upstream has descriptors, or if
 * `opened` is closed
 */
export async function nextGeneration(opened: Opened, last: () => Generation | undefined): Promise<Generation> {
  const begunAtMs = performance.now();
  const before = withSameOptions(opened, last());
  const sets = opened.upstreams.map((_, at) => before?.offers[at]?.set ?? noBytes);
  const read = await readAll(opened.readers, opened.closing.signal, before === undefined, sets);
  const builder = new GenerationBuilder(opened, before);
  await builder.update(read);
  const known = before?.descriptorReloads ?? (await builder.restore(last()));
  const unreadSinceMs = read.some((each) => each instanceof Error) ? begunAtMs : undefined;
  return { ...builder.finish(known, last()), unreadSinceMs };
}

/** Compares two generations, and returns the report of the reload between them. */
export function reportOf(last: Generation, next: Generation): ReloadReport {
  const [before, after] = [last, next].map(({ services }) => new Set(services.flatMap(proceduresOf)));
  return {
    isChanged: next.compiled !== last.compiled,
    added: [...(after ?? [])].filter((name) => before?.has(name) !== true),
    removed: [...(before ?? [])].filter((name) => after?.has(name) !== true),
    // A problem that several upstreams have is reported once.
    problems: [...new Set(next.descriptorReloads.flatMap(({ problem }) => problem?.split("\n") ?? []))],
  };
}

/**
 * Returns whether `onReload` reports a reload: the routes or conflicts have changed, or problems have appeared or ended.
 */
export function isReported(report: ReloadReport, last: Generation, next: Generation): boolean {
  const [before, after] = [last, next].map(({ descriptorReloads }) => descriptorReloads.map((each) => each.conflicts));
  const hadProblem = last.descriptorReloads.some(({ problem }) => problem !== undefined);
  return report.isChanged || hadProblem || report.problems.length > 0 || !isDeepStrictEqual(before, after);
}

/** Creates the readers of the upstreams' descriptors. @param onLate - called when a read finishes after its time limit */
export function openReaders(options: OpenedOptions, onLate: (opened: Opened) => void): Opened {
  const readers = options.upstreams.map((upstream) => {
    return new DescriptorReader(
      (signal) => upstream.readDescriptors(signal),
      (set, inUse) => describeSet(upstream, set, inUse),
      () => onLate(opened),
    );
  });
  const opened: Opened = { ...options, readers, closing: new AbortController() };
  return opened;
}

/** Describes a descriptor set, unless the set is in use. Never rejects. */
async function describeSet(upstream: ProxiedUpstream, set: Uint8Array, inUse: Uint8Array): Promise<ReadDescriptors> {
  const isInUse = inUse === noBytes ? set === noBytes : Buffer.compare(set, inUse) === 0;
  return { set, descriptors: isInUse ? undefined : await upstream.describe(set).catch(toError) };
}

/** Creates a generation in three steps: {@link update}, {@link restore} for new options, and {@link finish}. */
class GenerationBuilder {
  readonly #opened: Opened;
  /** The generation before, if it has the same options. */
  readonly #before: Generation | undefined;
  #offers: readonly Offer[];
  #compiled: CompiledProxy | undefined;
  /** Why each upstream's new descriptors are not in use. */
  #problems: readonly (Error | undefined)[] = [];

  constructor(opened: Opened, before: Generation | undefined) {
    this.#opened = opened;
    this.#before = before;
    this.#offers = before?.offers ?? opened.upstreams.map(() => emptyOffer);
    this.#compiled = before?.compiled;
  }

  /** Compiles routes from each upstream's new descriptors, or keeps the previous ones if these cannot be used. */
  async update(read: readonly (ReadDescriptors | Error)[]): Promise<void> {
    const wanted = read.map((each, at) => this.#offerOf(at, each));
    this.#problems = wanted.map(({ problem }) => problem);
    const changed = [...wanted.entries()].filter(([at, { offer }]) => offer !== this.#offers[at]);
    if (changed.length === 0 && this.#compiled !== undefined) return;
    const problem = await this.#compile(
      this.#offers.map((offer, at) => wanted[at]?.offer ?? offer),
      changed.map(([at]) => at),
    );
    if (problem === undefined) return;
    // An error in one upstream's descriptors must not prevent another upstream's reload.
    for (const [at, { offer }] of changed) {
      const own = changed.length === 1 ? problem : await this.#compile(this.#offers.with(at, offer), [at]);
      this.#problems = this.#problems.with(at, this.#problems[at] ?? own);
    }
  }

  /**
   * For new options, restores the descriptors that the last generation has from the same address for each upstream
   * without descriptors. Rejects if these or the operator's descriptors cannot be used, or if no upstream has descriptors.
   *
   * @returns each upstream's last reload under the previous options
   */
  async restore(last: Generation | undefined): Promise<readonly (DescriptorReload | undefined)[]> {
    const { upstreams } = this.#opened;
    const problems = this.#problems;
    const fatal = problems.filter((problem, at): problem is Error => {
      return upstreams[at]?.isReflected === false && problem !== undefined && !isUnreachable(problem);
    });
    const known = upstreams.map((_, at) => findKnown(upstreams, at, last));
    for (const [at, upstream] of upstreams.entries()) {
      const set = known[at]?.set;
      if (this.#offers[at]?.set !== noBytes || set === undefined) continue;
      const { offer, problem } = this.#offerOf(at, await describeSet(upstream, set, noBytes));
      const failure = problem ?? (await this.#compile(this.#offers.with(at, offer)));
      if (failure !== undefined) fatal.push(failure);
    }
    const failures = problems.filter((problem) => problem !== undefined);
    if (this.#offers.every(({ set }) => set === noBytes))
      fatal.push(...failures.filter((problem) => !isUnreachable(problem)), ...failures);
    const distinct = [...new Map(fatal.map((each) => [each.message, each])).values()];
    const [first, second] = distinct;
    if (first === undefined) return known.map((each) => each?.reload);
    if (second === undefined || isUnreachable(second)) throw first;
    throw withCode(new Error(distinct.map(messageOf).join("\n")), "ERR_DESCRIPTORS");
  }

  /** Returns the generation. @param earlier - each upstream's reload before this one */
  finish(
    earlier: readonly (DescriptorReload | undefined)[],
    last: Generation | undefined,
  ): Omit<Generation, "unreadSinceMs"> {
    const compiled = this.#compiled;
    if (compiled === undefined) throw new TypeError("no descriptors are loaded");
    const isSame = compiled === this.#before?.compiled;
    return {
      opened: this.#opened,
      offers: this.#offers,
      compiled,
      server: isSame ? this.#before.server : this.#serverOf(compiled, last),
      services: isSame ? this.#before.services : compiled.services.flat(),
      omitted: this.#offers.flatMap(({ descriptors }, at) => this.#withName(at, [...descriptors.omitted.values()])),
      descriptorSets: this.#offers.map(({ set }) => set),
      descriptorReloads: this.#problems.map((error, at) => this.#reloadOf(at, error, earlier[at], compiled)),
    };
  }

  /** Returns the server for new routes. The trusted proxies never change, because the listener uses them too. */
  #serverOf({ routes }: CompiledProxy, last: Generation | undefined): Server {
    const { options, report } = this.#opened;
    if (this.#before !== undefined) return { ...this.#before.server, routes };
    const server = createNodeServer(options, routes, report);
    return last === undefined ? server : { ...server, trustedProxies: last.server.trustedProxies };
  }

  /** Returns the descriptors to use after a read: the new ones, or the previous ones with the reason. */
  #offerOf(at: number, read: ReadDescriptors | Error): { readonly offer: Offer; readonly problem?: Error } {
    const before = this.#offers[at] ?? emptyOffer;
    // Any error leaves the routes unknown, even an error response, which a load balancer may have sent.
    if (read instanceof Error) return { offer: withUnknown(before, before.set === noBytes), problem: read };
    const { set, descriptors } = read;
    if (descriptors === undefined) return { offer: before };
    const lines =
      descriptors instanceof Error ? linesOf(descriptors) : servicesLosingTypes(before.descriptors, descriptors);
    if (!(descriptors instanceof Error) && lines.length === 0)
      return { offer: { set, descriptors: { ...descriptors, isUnknown: false } } };
    const problem = withCode(new Error(this.#withName(at, lines).join("\n")), "ERR_DESCRIPTORS");
    // A server that sends descriptors has been reached, even if the descriptors cannot be used.
    return { offer: withUnknown(before, false), problem };
  }

  /**
   * Compiles the routes, or keeps the previous routes and returns the error. Rejects if `closing` has aborted.
   *
   * @param changed - the upstreams whose new descriptors must have no routes of other owners
   */
  async #compile(offers: readonly Offer[], changed: readonly number[] = []): Promise<Error | undefined> {
    const { compile, closing } = this.#opened;
    closing.signal.throwIfAborted();
    try {
      const compiled = await runInTurns(compile(offers));
      const clashes = changed.flatMap((at) => this.#withName(at, (compiled.clashes[at] ?? []).map(describeClash)));
      if (clashes.length > 0) return withCode(new Error(clashes.join("\n")), "ERR_DESCRIPTORS");
      this.#compiled = compiled;
    } catch (error) {
      return toError(error);
    }
    this.#offers = offers;
    return undefined;
  }

  #reloadOf(
    at: number,
    error: Error | undefined,
    { lastSuccessMs, successes, failures }: DescriptorReload = initialReload,
    compiled: CompiledProxy,
  ): DescriptorReload {
    const { upstreams } = this.#opened;
    const foreign = [...(upstreams[at]?.foreignServices ?? [])].map(
      ([service, owner]) => `service ${toShortLine(service)} belongs to ${upstreams[owner]?.connections.name}`,
    );
    const offered = {
      conflicts: [...foreign, ...(compiled.conflicts[at] ?? [])],
      services: (compiled.services[at] ?? []).map(({ typeName }) => typeName),
    };
    return error === undefined
      ? { problem: undefined, lastSuccessMs: Date.now(), successes: successes + 1, failures, ...offered }
      : { problem: messageOf(error), lastSuccessMs, successes, failures: failures + 1, ...offered };
  }

  #withName(at: number, lines: readonly string[]): readonly string[] {
    return lines.map((line) => `${this.#opened.upstreams[at]?.connections.name}: ${line}`);
  }
}

/** Returns the last generation if the options are the same, as in a reload. */
function withSameOptions(opened: Opened, last: Generation | undefined): Generation | undefined {
  return last?.opened === opened ? last : undefined;
}

/** Returns the descriptors that the last generation has from an upstream's address, and their last reload. */
function findKnown(
  upstreams: readonly ProxiedUpstream[],
  at: number,
  last: Generation | undefined,
): { readonly set: Uint8Array; readonly reload: DescriptorReload } | undefined {
  const next = upstreams[at];
  if (last === undefined || next === undefined) return undefined;
  const sameAddress = [...last.opened.upstreams.entries()].filter(([, old]) => hasSameAddress(old, next));
  // Several upstreams may have one address, and the descriptors of each have only its services.
  const [index] =
    sameAddress.find(([, old]) => hasSameServices(old, next)) ??
    sameAddress.find(([, old]) => !upstreams.some((each) => hasSameAddress(old, each) && hasSameServices(old, each))) ??
    [];
  const [set, reload] = index === undefined ? [] : [last.descriptorSets[index], last.descriptorReloads[index]];
  return set === undefined || set === noBytes || reload === undefined ? undefined : { set, reload };
}

function hasSameAddress(one: ProxiedUpstream, other: ProxiedUpstream): boolean {
  return one.connections.name === other.connections.name;
}

function hasSameServices(one: ProxiedUpstream, other: ProxiedUpstream): boolean {
  return isDeepStrictEqual(one.options.services, other.options.services);
}

/** Records whether an upstream's services and routes are unknown. */
function withUnknown(offer: Offer, isUnknown: boolean): Offer {
  const { set, descriptors } = offer;
  return descriptors.isUnknown === isUnknown ? offer : { set, descriptors: { ...descriptors, isUnknown } };
}

const initialReload: DescriptorReload = {
  problem: undefined,
  lastSuccessMs: undefined,
  successes: 0,
  failures: 0,
  conflicts: [],
  services: [],
};

/** The offer of an upstream whose descriptors were never read. */
const emptyOffer: Offer = {
  set: noBytes,
  descriptors: {
    services: [],
    types: createFileRegistry(),
    omitted: new Map(),
    restricted: new Set(),
    hiddenRpcs: new Set(),
    labels: new Set(),
    isUnknown: false,
  },
};

/**
 * Returns a message for each served service whose new descriptors lack a type. Services that the upstream no longer
 * lists are not included.
 */
function servicesLosingTypes(before: ServiceDescriptors, { omitted }: ServiceDescriptors): readonly string[] {
  const served = new Set(before.services.map(({ typeName }) => typeName));
  return [...omitted].filter(([name]) => served.has(name)).map(([, reason]) => reason);
}

function proceduresOf({ methods }: DescService): readonly string[] {
  return methods.map(procedureOf);
}

function describeClash(clash: string): string {
  return `cannot use the descriptors: ${clash}; add the RPC to rest.omit, or replace its rule in rest.rules`;
}

/** Returns the lines of an error's message. */
export function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
