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
import { selectorOf } from "@plantstore/gateway/rest";
import { createUpstream, type Upstream } from "../upstreams/index.ts";
import { createAccessLog } from "./access-log.ts";
import { type Admission, openAdmission } from "./admission.ts";
import { writeCheckReport } from "./check-report.ts";
import { requireCertificates, ServedCertificate } from "./certificates.ts";
import { describeCauses, FailureLog } from "./failure-log.ts";
import { createProxyDocs, type ProxyDocs } from "./proxy-docs.ts";
import type { ProxySettings } from "./proxy-settings.ts";
import { ReloadLog } from "./reload-log.ts";
import type { Terminal } from "./terminal.ts";
import { toUrl } from "./to-url.ts";

/** Milliseconds between two attempts to read descriptors with `--wait`. */
const retryEveryMs = 1_000;

/** The end of the message of a failed reload. "These": other upstreams may use new descriptors. */
const previousInUse = "the previous descriptors of these upstreams stay in use";

/** How `--check` reports what would be served; `none` to serve. */
export type ReportFormat = "none" | "text" | "json";

/** A running proxy command. */
export class ProxyServer {
  readonly #settings: ProxySettings;
  readonly #terminal: Terminal;
  readonly #report: ReportFormat;
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
  #admission: Admission | undefined;
  #proxy: ProxyGateway | undefined;

  /** @throws SettingsProblem for an address that is not valid, InputError for certificates that are not */
  constructor(settings: ProxySettings, terminal: Terminal, report: ReportFormat) {
    this.#settings = settings;
    this.#terminal = terminal;
    this.#report = report;
    this.#log = new FailureLog(terminal);
    this.#reloads = new ReloadLog(terminal);
    this.#certificateReloads = new ReloadLog(terminal);
    const upstreams = settings.upstreams.map(({ name }, at) => ({ name, upstream: openUpstream(settings, at) }));
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
    const { upstreams, requiresAll } = this.#settings;
    if (upstreams.length < 2) return {};
    const problemOf = (at: number): string | undefined => {
      const { problem, lastSuccessMs } = this.#proxy?.descriptorReloads[at] ?? {};
      // After a failed reload, the upstream is still served with its previous descriptors.
      if (problem !== undefined && lastSuccessMs === undefined) return problem;
      return this.#upstreams[at]?.ready === false ? "unreachable" : undefined;
    };
    const parts = upstreams.map(({ name }, at): [string, ServerPart] => [
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

  get #checksOnly(): boolean {
    return this.#report !== "none";
  }

  /** Serves until a stop is requested, or prints the report. @returns the exit code */
  async run(): Promise<number> {
    const checksOnly = this.#checksOnly;
    if (checksOnly) requireCertificates(this.#settings);
    const stopped = checksOnly ? new Promise<never>(() => undefined) : this.#terminal.stopRequested();
    // Added before anything else, because SIGHUP without a listener terminates the process.
    if (!checksOnly) this.#terminal.onHangup(() => this.#reload());
    let admin: Gateway | undefined;
    try {
      this.#admission = await openAdmission(this.#settings, this.#terminal);
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
      this.#admission?.close();
      this.#reloads.close();
      this.#certificateReloads.close();
    }
  }

  async #openAdmin(): Promise<Gateway | undefined> {
    const { admin: address } = this.#settings;
    if (address === undefined || this.#checksOnly) return undefined;
    const endpoints = [...createProbes(this.#readiness), createMetricsEndpoint(() => this.#metrics.collect())];
    const admin = createGateway({ routes: () => undefined, endpoints });
    const bound = await admin.listen(address);
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
        if (!this.#settings.waitsForDescriptors || this.#checksOnly) throw error;
        if (messageOf(error) !== problem) this.#terminal.printError(`waiting for descriptors: ${messageOf(error)}`);
        problem = messageOf(error);
      }
      const isStopped = await Promise.race([stopped.then(() => true), pause(retryEveryMs)]);
      if (isStopped) return undefined;
    }
  }

  #options(): ProxyOptions {
    const { upstreams, rest, cors, trustedProxies, accessLog, headerBytes } = this.#settings;
    const logAccess = createAccessLog(accessLog, this.#terminal.print);
    return {
      upstreams: upstreams.flatMap(({ proxied }, at) => {
        const upstream = this.#upstreams[at];
        return upstream === undefined ? [] : [{ ...proxied, upstream }];
      }),
      limits: { headerBytes },
      rest,
      ...(trustedProxies && { trustedProxies: { addresses: trustedProxies } }),
      endpoints: this.#docs?.endpoints ?? [],
      ...(cors && { cors }),
      ...(this.#admission?.admit && { admit: this.#admission.admit }),
      onResponse: (request) => {
        this.#count(request);
        this.#log.logFailure(request);
        logAccess?.(request);
      },
      onFault: (error, source) => this.#log.write(`${source}: ${describeCauses(error)}`),
      onReload: (report) => this.#onReload(report),
    };
  }

  async #listen(proxy: ProxyGateway): Promise<void> {
    const { host, port, tls: files } = this.#settings;
    measureGateway(this.#metrics, proxy);
    measureDescriptors(
      this.#metrics,
      this.#settings.upstreams.map(({ name }) => name),
      proxy,
    );
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
    this.#admission?.reload();
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
    for (const [at, { name }] of this.#settings.upstreams.entries()) {
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

  /** Prints what would be served, and returns the exit code. */
  #printReport(proxy: ProxyGateway): number {
    this.#terminal.print(writeCheckReport(proxy, this.#settings, this.#report === "json"));
    return proxy.descriptorReloads.every(({ problem }) => problem === undefined) ? 0 : 1;
  }
}

function openUpstream({ upstreams, problemAt }: ProxySettings, at: number): Upstream {
  const { connection = { addresses: [] } } = upstreams[at] ?? {};
  try {
    return createUpstream(connection);
  } catch (error) {
    throw problemAt(`upstreams[${at}].addresses[0]`, `is not valid: ${messageOf(error)}`);
  }
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
