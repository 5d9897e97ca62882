import type { DescService } from "@bufbuild/protobuf";
import { type FaultReporter, guardCallback, type Routes, type Server } from "../calls/index.ts";
import { noBytes } from "../carriers/index.ts";
import { messageOf, withCode } from "../errors/index.ts";
import type { Described } from "./descriptors.ts";
import type { OpenUpstream } from "./proxied-upstream.ts";

/** What a reload has changed. */
export interface ReloadReport {
  /** The RPCs that were not proxied before: `/package.Service/Method`. */
  readonly added: readonly string[];
  /** The RPCs that are not proxied any more. */
  readonly removed: readonly string[];
  /** Why everything stays as it was; empty if the new descriptors are in use. */
  readonly problems: readonly string[];
}

/** Options of {@link ProxyTable}. */
interface ProxyTableOptions {
  readonly onReload?: (report: ReloadReport) => void;
}

/** The services that are proxied, and the {@link Routes} to them, which a reload replaces as a whole. */
export class ProxyTable {
  /** The server whose routes a reload replaces; calls in flight keep their target. */
  server: Server | undefined;
  services: readonly DescService[] = [];
  /** What the services were read from, for each upstream. */
  descriptorSets: readonly Uint8Array[] = [];
  readonly #upstreams: readonly OpenUpstream[];
  readonly #compileRoutes: (described: readonly Described[]) => Routes;
  readonly #report: FaultReporter;
  readonly #options: ProxyTableOptions;
  readonly #closing = new AbortController();
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
   * Reads the descriptors and puts them in use.
   *
   * @returns whether they are others than before; rejects if they cannot be used, and then changes nothing
   */
  async load(): Promise<boolean> {
    const sets = await Promise.all(this.#upstreams.map((upstream) => upstream.readDescriptors(this.#closing.signal)));
    // A source of the program's own may know of no signal.
    this.#closing.signal.throwIfAborted();
    const isSame = (set: Uint8Array, at: number): boolean =>
      Buffer.compare(set, this.descriptorSets[at] ?? noBytes) === 0;
    if (this.#routes !== undefined && sets.every(isSame)) return false;
    const described = this.#describe(sets);
    this.#routes = this.#compileRoutes(described);
    if (this.server !== undefined) this.server.routes = this.#routes;
    this.services = described.flatMap(({ services }) => services);
    this.descriptorSets = sets;
    return true;
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

  /** Gives up a reload that is under way. */
  close(): void {
    this.#closing.abort();
  }

  async #reload(): Promise<ReloadReport> {
    const before = proceduresOf(this.services);
    let isTold = true;
    let problems: readonly string[] = [];
    try {
      isTold = await this.load();
    } catch (error) {
      problems = linesOf(error);
    }
    const after = proceduresOf(this.services);
    const added = [...after].filter((name) => !before.has(name));
    const removed = [...before].filter((name) => !after.has(name));
    const report = { added, removed, problems };
    // Nobody may wait for the reload, and what is proxied does not depend on it.
    if (isTold) guardCallback("onReload", this.#options.onReload, this.#report)?.(report);
    return report;
  }

  /** @throws Error with all problems of all descriptors */
  #describe(sets: readonly Uint8Array[]): readonly Described[] {
    const problems: string[] = [];
    const described: Described[] = [];
    for (const [at, upstream] of this.#upstreams.entries()) {
      try {
        described.push(upstream.describe(sets[at] ?? noBytes));
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

function proceduresOf(services: readonly DescService[]): ReadonlySet<string> {
  return new Set(services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)));
}

function linesOf(error: unknown): readonly string[] {
  return messageOf(error).split("\n");
}
