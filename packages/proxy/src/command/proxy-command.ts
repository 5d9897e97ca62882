import { InputError } from "../check/index.ts";
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
import { createUpstream, defaultRestTimeoutMs, type Upstream } from "../upstreams/index.ts";
import { requireCertificates, ServedCertificate } from "./certificates.ts";
import { describeCauses, FailureLog } from "./failure-log.ts";
import { createProxyDocs, type ProxyDocs } from "./proxy-docs.ts";
import { type ProxySettings, readProxySettings, usage } from "./proxy-settings.ts";
import { ReloadLog } from "./reload-log.ts";
import type { Terminal } from "./terminal.ts";
import { toUrl } from "./to-url.ts";

/** Milliseconds between two attempts to read descriptors with `--wait`. */
const retryEveryMs = 1_000;

/** The end of the message of a failed reload. "These": other upstreams may use new descriptors. */
const previousInUse = "the previous descriptors of these upstreams stay in use";

/**
 * Runs the proxy with these command-line arguments.
 *
 * @returns the exit code: 0 after SIGTERM or SIGINT, 1 if it cannot serve, 2 for invalid arguments or files
 */
export async function proxyCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const settings = await readProxySettings(args);
    if (settings !== "help") return await new ProxyServer(settings, terminal).run();
    terminal.print(usage);
    return 0;
  } catch (error) {
    terminal.printError(error instanceof InputError ? error.message : `cannot start the proxy: ${messageOf(error)}`);
    return error instanceof InputError ? 2 : 1;
  }
}

/** A running proxy command. */
class ProxyServer {
  readonly #settings: ProxySettings;
  readonly #terminal: Terminal;
  readonly #upstreams: readonly Upstream[];
  readonly #metrics = new Metrics();
  /** Shared by all attempts to open the proxy, because the same metrics must not be registered twice. */
  readonly #count = createRequestMetrics(this.#metrics);
  readonly #readiness: Readiness;
  readonly #docs: ProxyDocs | undefined;
  readonly #log: FailureLog;
  readonly #reloads: ReloadLog;
  readonly #certificateReloads: ReloadLog;
  #certificate: ServedCertificate | undefined;
  #proxy: ProxyGateway | undefined;

  /** @throws InputError for an address or certificates that are not valid */
  constructor(settings: ProxySettings, terminal: Terminal) {
    this.#settings = settings;
    this.#terminal = terminal;
    this.#log = new FailureLog(terminal);
    this.#reloads = new ReloadLog(terminal);
    this.#certificateReloads = new ReloadLog(terminal);
    const upstreams = settings.upstreams.map((name) => ({ name, upstream: openUpstream(name, settings) }));
    this.#upstreams = upstreams.map(({ upstream }) => upstream);
    measureUpstreams(this.#metrics, upstreams);
    const descriptorsProblem = (): string | undefined =>
      this.#proxy === undefined ? "the descriptors are not loaded yet" : undefined;
    const upstreamProblem = (): string | undefined =>
      this.#upstreams.some(({ ready }) => ready) ? undefined : "no upstream is reachable";
    this.#readiness = new Readiness({
      descriptors: {
        get problem() {
          return descriptorsProblem();
        },
      },
      upstream: {
        get problem() {
          return upstreamProblem();
        },
      },
      ...this.#upstreamParts(),
    });
    this.#docs = settings.hasDocs ? createProxyDocs(() => this.#proxy?.services ?? [], settings.rest) : undefined;
  }

  /** Returns the readiness of each upstream if there are several. */
  #upstreamParts(): Readonly<Record<string, ServerPart>> {
    const { upstreams: names, requiresAll } = this.#settings;
    if (names.length < 2) return {};
    const problemOf = (at: number): string | undefined => {
      const { problem, lastSuccessMs } = this.#proxy?.descriptorReloads[at] ?? {};
      // After a failed reload, the upstream is still served with its previous descriptors.
      if (problem !== undefined && lastSuccessMs === undefined) return problem;
      return this.#upstreams[at]?.ready === false ? "unreachable" : undefined;
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
    const { checksOnly } = this.#settings;
    if (checksOnly) requireCertificates(this.#settings);
    const stopped = checksOnly ? new Promise<never>(() => undefined) : this.#terminal.stopRequested();
    // Added before anything else, because SIGHUP without a listener terminates the process.
    if (!checksOnly) this.#terminal.onHangup(() => this.#reload());
    let admin: Gateway | undefined;
    try {
      admin = await this.#openAdmin();
      this.#proxy = await this.#open(stopped);
      if (this.#proxy === undefined) return 0;
      this.#reportMissingUpstreams(this.#proxy);
      this.#reportOmittedServices(this.#proxy);
      this.#reportUnusedRules(this.#proxy);
      if (checksOnly) return this.#printReport(this.#proxy);
      await this.#listen(this.#proxy);
      await stopped;
      await drainGracefully(this.#proxy, this.#readiness, this.#settings.drain);
      return 0;
    } finally {
      // The proxy is drained. Only reflection calls made before the proxy was created can remain.
      const upstreams = this.#upstreams.map((upstream) => upstream.drain(0));
      // equivalent mutant: the process exits after all of these are closed in any case.
      await Promise.all([this.#proxy?.close(), admin?.close(), ...upstreams]);
      this.#reloads.close();
      this.#certificateReloads.close();
    }
  }

  async #openAdmin(): Promise<Gateway | undefined> {
    const { host, adminPort, checksOnly } = this.#settings;
    if (adminPort === undefined || checksOnly) return undefined;
    const endpoints = [...createProbes(this.#readiness), createMetricsEndpoint(() => this.#metrics.collect())];
    const admin = createGateway({ routes: () => undefined, endpoints });
    const bound = await admin.listen({ host, port: adminPort });
    this.#terminal.print(`health and metrics at ${toUrl("http", bound)}`);
    return admin;
  }

  /** Opens the proxy; resolves to `undefined` if a stop is requested before there are descriptors. */
  async #open(stopped: Promise<unknown>): Promise<ProxyGateway | undefined> {
    const stop = stopped.then(() => undefined);
    // A dynamic import: a static one would make the bundler split the entries of the package into several files.
    const { createProxy } = await import("../create-proxy.ts");
    for (let problem = ""; ;) {
      const opening = createProxy(this.#options());
      try {
        const proxy = await Promise.race([opening, stop]);
        // Reading the descriptors may never finish. If it finishes after the stop, only this code can close the proxy.
        if (proxy === undefined) opening.then((late) => late.close()).catch(() => undefined);
        return proxy;
      } catch (error) {
        if (!this.#settings.waitsForDescriptors || this.#settings.checksOnly) throw error;
        if (messageOf(error) !== problem) this.#terminal.printError(`waiting for descriptors: ${messageOf(error)}`);
        problem = messageOf(error);
      }
      const isStopped = await Promise.race([stopped.then(() => true), pause(retryEveryMs)]);
      if (isStopped) return undefined;
    }
  }

  #options(): ProxyOptions {
    const { descriptors, reflectionHeader, services, rest, timeoutMs, timeoutMaxMs, headerBytes, cors } =
      this.#settings;
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
      limits: { headerBytes },
      rest,
      endpoints: this.#docs?.endpoints ?? [],
      ...(cors && { cors }),
      onResponse: (request) => {
        this.#count(request);
        this.#log.logFailure(request);
      },
      onFault: (error, source) => this.#log.write(`${source}: ${describeCauses(error)}`),
      onReload: (report) => this.#onReload(report),
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
    const bound = await proxy.listen({ host, port, ...(tls && { tls }) });
    const names = proxy.services.map(({ typeName }) => typeName).join(", ");
    this.#terminal.print(`${toUrl(tls ? "https" : "http", bound)} serves ${names}`);
    this.#certificateReloads.record(this.#certificate?.problem);
  }

  /** Reads descriptors and certificates again, unless the first read has not finished. */
  #reload(): void {
    void this.#proxy?.reload();
    const certificate = this.#certificate;
    if (certificate?.reload() === true) this.#proxy?.setSecureContext(certificate.current);
    this.#certificateReloads.record(certificate?.problem);
  }

  #onReload({ isChanged, added, removed, problems }: ReloadReport): void {
    const hasFailed = problems.length > 0;
    const problem = `cannot reload the descriptors: ${problems.join("; ")}; ${previousInUse}`;
    this.#reloads.record(hasFailed ? problem : undefined);
    if (!isChanged && !hasFailed) this.#terminal.print("descriptors are readable again, unchanged");
    if (!isChanged) return;
    if (this.#proxy !== undefined) {
      this.#reportOmittedServices(this.#proxy);
      this.#reportUnusedRules(this.#proxy);
    }
    this.#docs?.renew();
    const changes = [...added.map((name) => `+ ${name}`), ...removed.map((name) => `- ${name}`)];
    this.#terminal.print(["descriptors reloaded", ...changes].join("\n  "));
  }

  /** Logs the upstreams whose descriptors have not been read yet, with the reason. */
  #reportMissingUpstreams({ descriptorReloads }: ProxyGateway): void {
    for (const [at, name] of this.#settings.upstreams.entries()) {
      const problem = descriptorReloads[at]?.problem;
      if (problem !== undefined) this.#log.write(`serving without ${name}: ${problem}`);
    }
  }

  /** Logs the services that are not served, and why. */
  #reportOmittedServices({ omitted }: ProxyGateway): void {
    for (const reason of omitted) this.#log.write(`service not served: ${reason}`);
  }

  /** Prints the rules that match no RPC because their service is missing or their selector is misspelled. */
  #reportUnusedRules({ services }: ProxyGateway): void {
    const served = new Set(services.flatMap(({ methods }) => methods.map(selectorOf)));
    for (const { selector = "" } of this.#settings.rest.rules ?? []) {
      if (served.has(selector)) continue;
      this.#terminal.printError(`the rule for ${selector} has no effect: no served RPC has this name`);
    }
  }

  #describeTimeouts(): string {
    const { timeoutMs, timeoutMaxMs } = this.#settings;
    const defaultMs = timeoutMs || timeoutMaxMs;
    const restMs = timeoutMs === undefined ? (defaultMs ?? defaultRestTimeoutMs) : defaultMs;
    return `Timeouts of unary calls without a deadline: REST ${nameTimeout(restMs)}, others ${nameTimeout(defaultMs)}.`;
  }

  /** Prints what would be served, and returns the exit code. */
  #printReport(proxy: ProxyGateway): number {
    const methods = proxy.services.flatMap((service) => service.methods);
    const { bindings } = surveyRestRoutes(methods, this.#settings.rest).routes;
    const services = proxy.services.map(({ typeName }) => `  ${typeName}`);
    const listed = bindings.map((binding) => `  ${describeBinding(binding)}`);
    const report = ["The proxy would serve:", ...services, "", "REST routes:", ...listed, "", this.#describeTimeouts()];
    this.#terminal.print(report.join("\n"));
    return proxy.descriptorReloads.every(({ problem }) => problem === undefined) ? 0 : 1;
  }
}

function openUpstream(address: string, { upstreamTls, headerBytes }: ProxySettings): Upstream {
  try {
    return createUpstream({ addresses: address, limits: { headerBytes }, ...(upstreamTls && { tls: upstreamTls }) });
  } catch (error) {
    throw new InputError(messageOf(error));
  }
}

function nameTimeout(ms: number | undefined): string {
  return ms === undefined ? "none" : `${ms} ms`;
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
