import { createGateway, type Gateway } from "@protoport/gateway";
import { messageOf } from "@protoport/gateway/errors";
import { createProbes, drainGracefully, Readiness } from "@protoport/gateway/health";
import { isProduction } from "@protoport/gateway/options";
import { checkRestRoutes } from "@protoport/gateway/rest";
import {
  type CallObserver,
  createMetricsEndpoint,
  createRequestMetrics,
  measureDescriptors,
  type MeasuredUpstream,
  measureFiles,
  measureGateway,
  measureProcess,
  measureReadiness,
  measureUpstreams,
  Metrics,
} from "@protoport/telemetry/metrics";
import type { ProxyGateway, ProxyOptions, ReloadReport } from "../create-proxy.ts";
import { SettingsProblem } from "../settings/index.ts";
import { createAccessLog, shownNames } from "./access-log.ts";
import { requireCertificates, ServedCertificate } from "./certificates.ts";
import { writeCheckReport } from "./check-report.ts";
import type { ConfigurationFile } from "./configuration-file.ts";
import { describeUnusedNames, failForSettings } from "./known-names.ts";
import { describeCauses, Notices } from "./notices.ts";
import type { ProxySettings } from "./proxy-settings.ts";
import { describeUncheckedScopes, requireServable, requireServableFiles } from "./servable-settings.ts";
import { closeParts, openParts, readinessOf, type ServingParts } from "./serving-parts.ts";
import type { Terminal } from "./terminal.ts";

/** Milliseconds between two attempts to read descriptors with `--wait`. */
const retryEveryMs = 1_000;

/** The end of the message for a failed reload. "These" excludes other upstreams, which may use new descriptors. */
const previousInUse = "the previous descriptors of these upstreams stay in use";

/** The output format of `--check`, or the OpenAPI document. `none` starts the server instead. */
type ReportFormat = "none" | "text" | "json" | "openapi";

/**
 * Runs a proxy with some settings until a stop is requested, or prints a report.
 *
 * @param file - the configuration file, which SIGHUP reloads, or `undefined` if only flags contain settings
 * @returns the exit code
 * @throws SettingsProblem or InputError if a setting is not valid
 */
export async function serveProxy(
  settings: ProxySettings,
  terminal: Terminal,
  report: ReportFormat,
  file: ConfigurationFile | undefined,
): Promise<number> {
  let proxy: ProxyServer | undefined;
  // A report is the only output, so that programs can read it.
  const output = report === "none" ? terminal : { out: terminal.err, err: terminal.err };
  const parts = await openParts(settings, output, () => proxy?.served);
  proxy = new ProxyServer(parts, terminal, report, file);
  return await proxy.run();
}

class ProxyServer {
  readonly #terminal: Terminal;
  readonly #report: ReportFormat;
  readonly #file: ConfigurationFile | undefined;
  readonly #metrics = new Metrics();
  /** The request metrics for all attempts to open the proxy, because metrics must not be registered twice. */
  readonly #count = createRequestMetrics(this.#metrics);
  readonly #onUpstreamCall: CallObserver;
  readonly #readiness: Readiness;
  readonly #notices: Notices;
  /** The upstreams whose load is measured, and their names. */
  readonly #measured: MeasuredUpstream[] = [];
  readonly #names: string[] = [];
  #parts: ServingParts;
  #process: Disposable | undefined;
  #certificate: ServedCertificate | undefined;
  #proxy: ProxyGateway | undefined;

  constructor(parts: ServingParts, terminal: Terminal, report: ReportFormat, file: ConfigurationFile | undefined) {
    this.#terminal = terminal;
    this.#report = report;
    this.#file = file;
    this.#notices = new Notices(terminal);
    this.#parts = parts;
    this.#measure(parts);
    this.#onUpstreamCall = measureUpstreams(this.#metrics, this.#measured);
    this.#readiness = new Readiness(() => readinessOf(this.#parts, this.#proxy));
  }

  get #settings(): ProxySettings {
    return this.#parts.settings;
  }

  /** Replaces the upstreams whose load is measured. */
  #measure({ upstreams }: ServingParts): void {
    this.#measured.splice(0, Infinity, ...Array.from(upstreams, ([name, upstream]) => ({ name, upstream })));
    this.#names.splice(0, Infinity, ...upstreams.keys());
  }

  /** The services and REST options in use, or `undefined` before the descriptors are loaded. */
  get served(): Pick<ProxyGateway, "services" | "rest"> | undefined {
    return this.#proxy;
  }

  get #checksOnly(): boolean {
    return this.#report !== "none";
  }

  /** Serves until a stop is requested, or prints the report. @returns the exit code */
  async run(): Promise<number> {
    if (this.#checksOnly) requireCertificates(this.#settings);
    const stopped = this.#checksOnly ? new Promise<never>(() => undefined) : this.#terminal.stopRequested();
    if (!this.#checksOnly) this.#terminal.onHangup(() => this.#reload());
    let admin: Gateway | undefined;
    try {
      admin = await this.#openAdmin();
      await this.#open(stopped);
      if (this.#proxy === undefined) return 0;
      await requireServable(this.#proxy, this.#parts);
      this.#reportMissingUpstreams(this.#proxy);
      this.#reportConflicts(this.#proxy);
      this.#reportOmittedServices(this.#proxy);
      this.#reportIneffectiveNames(this.#proxy);
      this.#reportMissingRoutes(this.#proxy);
      if (this.#checksOnly) return await this.#printReport(this.#proxy);
      await this.#listen(this.#proxy);
      await stopped;
      await drainGracefully(this.#proxy, this.#readiness, this.#settings.drain);
      return 0;
    } finally {
      // The proxy is drained. If no proxy was created, reflection calls may still be in flight.
      // equivalent mutant: the process exits afterwards, which also closes the connections.
      await Promise.all([this.#proxy?.close(), admin?.close(), closeParts(this.#parts, 0)]);
      this.#process?.[Symbol.dispose]();
      this.#notices.close();
    }
  }

  async #openAdmin(): Promise<Gateway | undefined> {
    const { admin: address } = this.#settings;
    if (address === undefined || this.#checksOnly) return undefined;
    const endpoints = [...createProbes(this.#readiness), createMetricsEndpoint(() => this.#metrics.collect())];
    this.#process = measureProcess(this.#metrics);
    const admin = createGateway({ routes: () => undefined, endpoints });
    const bound = await admin.listen(address);
    this.#terminal.out(`health and metrics at ${toUrl("http", bound)}`);
    return admin;
  }

  /** Opens the proxy, unless a stop is requested before descriptors are available. */
  async #open(stopped: Promise<unknown>): Promise<void> {
    const stop = stopped.then(() => undefined);
    // A static import would make the bundler split the package's entries into several files.
    const { createProxy } = await import("../create-proxy.ts");
    for (let problem = ""; ;) {
      const parts = this.#parts;
      const opening = createProxy(this.#options(parts)).catch((error: unknown) => failForSettings(parts, error));
      try {
        const proxy = await Promise.race([opening, stop]);
        // Does not wait, because reading descriptors may never finish. A proxy that opens later is closed here.
        if (proxy === undefined) return void opening.then((late) => late.close()).catch(() => undefined);
        if (parts === this.#parts) {
          this.#proxy = proxy;
          return;
        }
        await proxy.close();
      } catch (error) {
        // Retries if a SIGHUP has replaced `parts` and closed their upstreams.
        if (parts !== this.#parts) continue;
        if (!this.#settings.waitsForDescriptors || this.#checksOnly || this.#isMistake(error)) throw error;
        if (messageOf(error) !== problem) this.#terminal.err(`waiting for descriptors: ${messageOf(error)}`);
        problem = messageOf(error);
      }
      const isStopped = await Promise.race([stopped.then(() => true), pause(retryEveryMs)]);
      if (isStopped) return undefined;
    }
  }

  /** Returns whether a mistake in the configuration caused an error, so that another attempt would fail too. */
  #isMistake(error: unknown): boolean {
    if ([TypeError, RangeError, SettingsProblem].some((type) => error instanceof type)) return true;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const hasRules = (this.#settings.rest.rules ?? []).length > 0;
    return code === "ERR_OPTIONS" || (code === "ERR_HTTP_RULES" && hasRules);
  }

  #options(parts: ServingParts): ProxyOptions {
    const { settings, docs, accessChecks, mcp, validation } = parts;
    const { rest, json, cors, trustedProxies, accessLog, headerBytes, requestBytes, visibility } = settings;
    const logAccess = createAccessLog(accessLog, this.#terminal.out);
    return {
      upstreams: [...parts.upstreams.values()].flatMap((upstream, at) => {
        const options = settings.upstreams[at];
        return options === undefined ? [] : [{ ...options, upstream }];
      }),
      limits: { headerBytes },
      readMaxBytes: requestBytes,
      nameOptions: isProduction() ? false : shownNames,
      rest,
      jsonOptions: json,
      ...(trustedProxies && { trustedProxies: { addresses: trustedProxies } }),
      endpoints: [...(docs?.endpoints ?? []), ...accessChecks.endpoints],
      ...(cors && { cors }),
      ...(mcp && { mcp }),
      ...(visibility && { visibility }),
      ...(validation && { validation }),
      ...(accessChecks.admit && { admit: accessChecks.admit }),
      onResponse: (request) => {
        this.#count(request);
        this.#notices.failure(request);
        logAccess?.(request);
      },
      onFault: (error, source) => this.#notices.event(`${source}: ${describeCauses(error)}`),
      onUpstreamCall: this.#onUpstreamCall,
      onReload: (report) => this.#onReload(report),
    };
  }

  async #listen(proxy: ProxyGateway): Promise<void> {
    const { host, port, tls: files } = this.#settings;
    measureGateway(this.#metrics, proxy);
    measureDescriptors(this.#metrics, this.#names, proxy);
    measureReadiness(this.#metrics, this.#readiness);
    if (files !== undefined) this.#certificate = new ServedCertificate(files);
    const measured = [this.#certificate, this.#file].filter((file) => file !== undefined);
    if (measured.length > 0) measureFiles(this.#metrics, measured);
    const tls = this.#certificate?.current;
    const bound = await proxy.listen({ host, port, ...(tls && { tls }) });
    const names = proxy.services.map(({ typeName }) => typeName).join(", ");
    this.#terminal.out(`${toUrl(tls ? "https" : "http", bound)} serves ${names}`);
    this.#certificate?.report(this.#notices);
  }

  /** Reads configuration, descriptors and certificates again. */
  #reload(): void {
    void this.#reloadConfiguration();
    const certificate = this.#certificate;
    if (certificate?.reload() === true) this.#proxy?.setSecureContext(certificate.current);
    certificate?.report(this.#notices);
  }

  async #reloadConfiguration(): Promise<void> {
    await this.#file?.reload(
      () => this.#settings,
      async (settings) => {
        const parts = await openParts(settings, this.#terminal, () => this.served, this.#parts);
        let proxy: ProxyGateway | undefined;
        try {
          if (this.#proxy === undefined) await requireServableFiles(parts);
          // Nothing is awaited from here on while no proxy is open, because a proxy that opens meanwhile would use the
          // previous parts, which are closed below.
          proxy = this.#proxy;
          if (proxy !== undefined)
            await proxy.reconfigure(this.#options(parts), (next) => requireServable(next, parts, this.#parts));
        } catch (error) {
          await closeParts(parts, 0, this.#parts);
          return await failForSettings(parts, error);
        }
        const old = this.#parts;
        this.#parts = parts;
        this.#measure(parts);
        this.#terminal.out("configuration reloaded");
        if (proxy !== undefined) {
          // `reconfigure` has read the descriptors, so an earlier problem may be solved.
          const isSolved = proxy.descriptorReloads.every((reload) => reload.problem === undefined);
          if (isSolved) this.#notices.problem("descriptors", undefined);
          this.#reportMissingUpstreams(proxy);
          this.#reportConflicts(proxy);
          this.#reportOmittedServices(proxy);
          this.#reportIneffectiveNames(proxy);
        }
        void closeParts(old, proxy === undefined ? 0 : old.settings.drain.timeoutMs, parts);
      },
    );
    this.#notices.problem("configuration", this.#file?.problem);
    // A successful configuration reload has just read the descriptors.
    if (this.#file !== undefined && this.#file.problem === undefined) return;
    this.#parts.accessChecks.reload();
    await this.#proxy?.reload();
  }

  #onReload({ isChanged, added, removed, problems }: ReloadReport): void {
    const hadProblem = this.#notices.has("descriptors");
    const hasFailed = problems.length > 0;
    const problem = `cannot reload the descriptors: ${problems.join("; ")}; ${previousInUse}`;
    this.#notices.problem("descriptors", hasFailed ? problem : undefined);
    if (this.#proxy !== undefined) this.#reportConflicts(this.#proxy);
    if (!isChanged && hadProblem && !hasFailed) this.#terminal.out("descriptors are readable again, unchanged");
    if (!isChanged) return;
    if (this.#proxy !== undefined) {
      this.#reportOmittedServices(this.#proxy);
      this.#reportIneffectiveNames(this.#proxy);
    }
    this.#parts.docs?.renew();
    const changes = [...added.map((name) => `+ ${name}`), ...removed.map((name) => `- ${name}`)];
    this.#terminal.out(["descriptors reloaded", ...changes].join("\n  "));
  }

  /** Logs the upstreams whose descriptors cannot be read, with the reason. */
  #reportMissingUpstreams({ descriptorReloads }: ProxyGateway): void {
    for (const [at, name] of this.#names.entries()) {
      const { problem, lastSuccessMs } = descriptorReloads[at] ?? {};
      if (problem === undefined) continue;
      const what = lastSuccessMs === undefined ? `without ${name}` : `${name} by its previous descriptors`;
      this.#notices.event(`serving ${what}: ${problem}`);
    }
  }

  #reportConflicts({ descriptorReloads }: ProxyGateway): void {
    for (const [at, name] of this.#names.entries()) {
      const lines = (descriptorReloads[at]?.conflicts ?? []).map((each) => `upstream ${name}: ${each}`);
      this.#notices.state(`upstream ${name}`, lines, "more services or routes belong to others");
    }
  }

  #reportOmittedServices({ omitted }: ProxyGateway): void {
    for (const reason of omitted) this.#notices.event(`service not served: ${reason}`);
  }

  /** Prints the names in the settings that match no service or RPC, and the RPCs whose scopes are not checked. */
  #reportIneffectiveNames(proxy: ProxyGateway): void {
    describeUnusedNames(proxy, this.#settings).forEach(this.#terminal.err);
    describeUncheckedScopes(proxy.services, this.#parts).forEach(this.#terminal.err);
  }

  /** Prints why REST has no routes. Some servers, such as grpc-js, omit annotations from their reflection. */
  #reportMissingRoutes({ services, rest }: ProxyGateway): void {
    // #reportIneffectiveNames reports unused rules.
    if ((rest.rules ?? []).length > 0) return;
    const methods = services.flatMap((service) => service.methods);
    if (methods.some((method) => checkRestRoutes([method], rest).routes.bindings.length > 0)) return;
    this.#terminal.err(
      "no RPC has a REST route: the descriptors lack google.api.http annotations; use --descriptors with a file that " +
        "has them, or --rules",
    );
  }

  async #printReport(proxy: ProxyGateway): Promise<number> {
    const { hasDocs, problemAt } = this.#settings;
    if (this.#report !== "openapi") this.#terminal.out(writeCheckReport(proxy, this.#parts, this.#report === "json"));
    else if (!hasDocs) throw problemAt("docs", "must be true for --openapi");
    else this.#terminal.out(await (await proxy.fetch(new Request("http://localhost/openapi.json"))).text());
    return proxy.descriptorReloads.every(({ problem }) => problem === undefined) ? 0 : 1;
  }
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}

/** Returns a listening server's URL, with an IPv6 address in brackets (RFC 3986 §3.2.2). */
export function toUrl(
  scheme: "http" | "https",
  { address, port }: { readonly address: string; readonly port: number },
): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
