import { InputProblem } from "../check/index.ts";
import { messageOf } from "@plantstore/gateway/internal/errors";
import type { ProxyGateway, ProxyOptions, ReloadReport } from "../create-proxy.ts";
import { createProbes, drainGracefully, Readiness, type ServerPart } from "@plantstore/gateway/health";
import { createGateway, type Gateway } from "@plantstore/gateway";
import {
  createMetricsEndpoint,
  createRequestMetrics,
  measureDescriptors,
  measureFiles,
  measureGateway,
  measureReadiness,
  measureUpstreams,
  Metrics,
} from "@plantstore/telemetry/metrics";
import { describeBinding, selectorOf, surveyRestRoutes } from "@plantstore/gateway/rest";
import { createUpstream, type Upstream } from "../upstreams/index.ts";
import { requireCertificates, ServedCertificate } from "./certificates.ts";
import { causesOf, FailureLog } from "./failure-log.ts";
import { createProxyDocs, type ProxyDocs } from "./proxy-docs.ts";
import { type ProxySettings, readProxySettings, usage } from "./proxy-settings.ts";
import { ReloadLog } from "./reload-log.ts";
import type { Terminal } from "./terminal.ts";
import { toUrl } from "./to-url.ts";

/** Milliseconds between two attempts to read descriptors with `--wait`. */
const retryEveryMs = 1_000;

/** What a refused reload leaves: of several upstreams, the others may have new descriptors in use. */
const previousInUse = "the previous ones of these upstreams stay in use";

/**
 * Runs `proxy` with the words after it.
 *
 * @returns the exit code: 0 once it was told to stop, 1 if it cannot serve, 2 for words or files that cannot be used
 */
export async function proxyCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const settings = await readProxySettings(words);
    if (settings !== "help") return await new ProxyServer(settings, terminal).run();
    terminal.print(usage);
    return 0;
  } catch (error) {
    terminal.complain(error instanceof InputProblem ? error.message : `it cannot serve: ${messageOf(error)}`);
    return error instanceof InputProblem ? 2 : 1;
  }
}

/** A proxy, from its start until it is told to stop. */
class ProxyServer {
  readonly #settings: ProxySettings;
  readonly #terminal: Terminal;
  readonly #upstreams: readonly Upstream[];
  readonly #metrics = new Metrics();
  /** One for all attempts to open the proxy: each would add its metrics. */
  readonly #count = createRequestMetrics(this.#metrics);
  readonly #readiness: Readiness;
  readonly #docs: ProxyDocs | undefined;
  readonly #log: FailureLog;
  readonly #reloads: ReloadLog;
  readonly #certificateReloads: ReloadLog;
  #certificate: ServedCertificate | undefined;
  #proxy: ProxyGateway | undefined;

  /** @throws InputProblem for an address, or for certificates that cannot be used */
  constructor(settings: ProxySettings, terminal: Terminal) {
    this.#settings = settings;
    this.#terminal = terminal;
    this.#log = new FailureLog(terminal);
    this.#reloads = new ReloadLog(terminal);
    this.#certificateReloads = new ReloadLog(terminal);
    const upstreams = settings.upstreams.map((name) => ({ name, upstream: openUpstream(name, settings) }));
    this.#upstreams = upstreams.map(({ upstream }) => upstream);
    measureUpstreams(this.#metrics, upstreams);
    const isServed = (): string | undefined => (this.#proxy === undefined ? "there are no descriptors yet" : undefined);
    const isReached = (): string | undefined =>
      this.#upstreams.some(({ ready }) => ready) ? undefined : "no upstream can be reached";
    this.#readiness = new Readiness({
      descriptors: {
        get problem() {
          return isServed();
        },
      },
      upstream: {
        get problem() {
          return isReached();
        },
      },
      ...this.#eachUpstream(),
    });
    this.#docs = settings.hasDocs ? createProxyDocs(() => this.#proxy?.services ?? [], settings.rest) : undefined;
  }

  /** The parts of readiness for each of several upstreams. */
  #eachUpstream(): Readonly<Record<string, ServerPart>> {
    const { upstreams: names, requiresAll } = this.#settings;
    if (names.length < 2) return {};
    const problemOf = (at: number): string | undefined => {
      const { problem, lastSuccessMs } = this.#proxy?.descriptorReloads[at] ?? {};
      // With the descriptors before it serves all the same.
      if (problem !== undefined && lastSuccessMs === undefined) return problem;
      return this.#upstreams[at]?.ready === false ? "cannot be reached" : undefined;
    };
    const parts = names.map((name, at): [string, ServerPart] => [
      `upstream ${name}`,
      {
        isOptional: !requiresAll,
        get problem() {
          return problemOf(at);
        },
      },
    ]);
    return Object.fromEntries(parts);
  }

  async run(): Promise<number> {
    const { checks } = this.#settings;
    if (checks) requireCertificates(this.#settings);
    const stopped = checks ? new Promise<never>(() => undefined) : this.#terminal.stopped();
    // From the start: a hangup that nobody listens to ends the process.
    if (!checks) this.#terminal.onHangup(() => this.#reload());
    let admin: Gateway | undefined;
    try {
      admin = await this.#openAdmin();
      this.#proxy = await this.#open(stopped);
      if (this.#proxy === undefined) return 0;
      this.#complainOfMissing(this.#proxy);
      this.#complainOfHoles(this.#proxy);
      this.#complainOfRules(this.#proxy);
      if (checks) return this.#report(this.#proxy);
      await this.#listen(this.#proxy);
      await stopped;
      await drainGracefully(this.#proxy, this.#readiness, this.#settings.drain);
      return 0;
    } finally {
      // Calls have had their time; what is left was asked before there was a proxy.
      const upstreams = this.#upstreams.map((upstream) => upstream.drain(0));
      // No test can tell: the process ends with the last of them, whoever waits.
      await Promise.all([this.#proxy?.close(), admin?.close(), ...upstreams]);
      this.#reloads.close();
      this.#certificateReloads.close();
    }
  }

  async #openAdmin(): Promise<Gateway | undefined> {
    const { host, adminPort, checks } = this.#settings;
    if (adminPort === undefined || checks) return undefined;
    const endpoints = [...createProbes(this.#readiness), createMetricsEndpoint(() => this.#metrics.collect())];
    const admin = createGateway({ routes: () => undefined, endpoints });
    const at = await admin.listen({ host, port: adminPort });
    this.#terminal.print(`health and metrics at ${toUrl("http", at)}`);
    return admin;
  }

  /** Opens the proxy; resolves to `undefined` if it is told to stop before there are descriptors. */
  async #open(stopped: Promise<unknown>): Promise<ProxyGateway | undefined> {
    const stop = stopped.then(() => undefined);
    // Imported here, so that the package has each of its entries in one file.
    const { createProxy } = await import("../create-proxy.ts");
    for (let problem = ""; ;) {
      const opening = createProxy(this.#options());
      try {
        const proxy = await Promise.race([opening, stop]);
        // What it waits for may never come; if it does after all, nobody is left to close it.
        if (proxy === undefined) opening.then((late) => late.close()).catch(() => undefined);
        return proxy;
      } catch (error) {
        if (!this.#settings.waits || this.#settings.checks) throw error;
        if (messageOf(error) !== problem) this.#terminal.complain(`waits for descriptors: ${messageOf(error)}`);
        problem = messageOf(error);
      }
      const isStopped = await Promise.race([stopped.then(() => true), pause(retryEveryMs)]);
      if (isStopped) return undefined;
    }
  }

  #options(): ProxyOptions {
    const { descriptors, reflectionHeader, services, rest, timeoutMs, timeoutMaxMs, cors } = this.#settings;
    const upstreams = this.#upstreams.map((upstream) => ({
      upstream,
      descriptors,
      reflectionHeader,
      ...(services && { services }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(timeoutMaxMs !== undefined && { timeoutMaxMs }),
    }));
    return {
      upstreams,
      rest,
      endpoints: this.#docs?.endpoints ?? [],
      ...(cors && { cors }),
      onAnswer: (answer) => {
        this.#count(answer);
        this.#log.answered(answer);
      },
      onFault: (error, what) => this.#log.write(`${what}: ${causesOf(error)}`),
      onReload: (report) => this.#reloaded(report),
    };
  }

  async #listen(proxy: ProxyGateway): Promise<void> {
    const { host, port, tls: files } = this.#settings;
    measureGateway(this.#metrics, proxy);
    measureDescriptors(this.#metrics, this.#settings.upstreams, proxy);
    measureReadiness(this.#metrics, this.#readiness);
    if (files !== undefined) {
      this.#certificate = new ServedCertificate(files);
      measureFiles(this.#metrics, [this.#certificate]);
    }
    const tls = this.#certificate?.current;
    const at = await proxy.listen({ host, port, ...(tls && { tls }) });
    const names = proxy.services.map(({ typeName }) => typeName).join(", ");
    this.#terminal.print(`${toUrl(tls ? "https" : "http", at)} serves ${names}`);
    this.#certificateReloads.note(this.#certificate?.problem);
  }

  /** Reads descriptors and certificates again, once there is something that is served by them. */
  #reload(): void {
    void this.#proxy?.reload();
    const certificate = this.#certificate;
    if (certificate?.reload() === true) this.#proxy?.setSecureContext(certificate.current);
    this.#certificateReloads.note(certificate?.problem);
  }

  #reloaded({ isChanged, added, removed, problems }: ReloadReport): void {
    const isRefused = problems.length > 0;
    const refusal = `descriptors could not be reloaded: ${problems.join("; ")}; ${previousInUse}`;
    this.#reloads.note(isRefused ? refusal : undefined);
    if (!isChanged && !isRefused) this.#terminal.print("descriptors are readable again and unchanged");
    if (!isChanged) return;
    if (this.#proxy !== undefined) {
      this.#complainOfHoles(this.#proxy);
      this.#complainOfRules(this.#proxy);
    }
    this.#docs?.renew();
    const changes = [...added.map((name) => `+ ${name}`), ...removed.map((name) => `- ${name}`)];
    this.#terminal.print(["reloaded the descriptors", ...changes].join("\n  "));
  }

  /** Names the upstreams whose descriptors could not be read yet. */
  #complainOfMissing({ descriptorReloads }: ProxyGateway): void {
    for (const [at, name] of this.#settings.upstreams.entries()) {
      const problem = descriptorReloads[at]?.problem;
      if (problem !== undefined) this.#log.write(`serves without ${name}: ${problem}`);
    }
  }

  /** Names the services that are not served, and why. */
  #complainOfHoles({ omitted }: ProxyGateway): void {
    for (const reason of omitted) this.#log.write(`a service is left out: ${reason}`);
  }

  /** Names the rules that are of no RPC: of a service that is not there yet, or misspelled. */
  #complainOfRules({ services }: ProxyGateway): void {
    const served = new Set(services.flatMap(({ methods }) => methods.map(selectorOf)));
    for (const { selector = "" } of this.#settings.rest.rules ?? []) {
      if (served.has(selector)) continue;
      this.#terminal.complain(`the rule for ${selector} has no effect: no RPC that is served has this name`);
    }
  }

  /** Prints what would be served. */
  #report(proxy: ProxyGateway): number {
    const methods = proxy.services.flatMap((service) => service.methods);
    const { bindings } = surveyRestRoutes(methods, this.#settings.rest).routes;
    const services = proxy.services.map(({ typeName }) => `  ${typeName}`);
    const listed = bindings.map((binding) => `  ${describeBinding(binding)}`);
    this.#terminal.print(["It would serve:", ...services, "", "and over REST:", ...listed].join("\n"));
    return proxy.descriptorReloads.every(({ problem }) => problem === undefined) ? 0 : 1;
  }
}

function openUpstream(address: string, { upstreamTls }: ProxySettings): Upstream {
  try {
    return createUpstream({ addresses: address, ...(upstreamTls && { tls: upstreamTls }) });
  } catch (error) {
    throw new InputProblem(messageOf(error));
  }
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
