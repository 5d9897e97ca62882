import { isDeepStrictEqual } from "node:util";
import { messageOf } from "@protoport/gateway/errors";
import type { ProxySettings } from "./proxy-settings.ts";

/** The configuration file in use. Metrics report its reloads. */
export class ConfigurationFile {
  readonly path: string;
  /** When the file was last loaded successfully, in ms since 1970. */
  lastSuccessMs: number = Date.now();
  /** Why the last reload failed. After a failed reload, the previous configuration stays in use. */
  problem: string | undefined;
  readonly #read: () => Promise<ProxySettings>;
  #running: Promise<unknown> = Promise.resolve();

  /** @param read - reads the settings, and rejects if they are not valid */
  constructor(path: string, read: () => Promise<ProxySettings>) {
    this.path = path;
    this.#read = read;
  }

  /**
   * Reads the settings again and uses them. Waits for a running reload first. Never rejects. {@link problem} has the
   * reason if the settings cannot be used.
   */
  reload(current: () => ProxySettings, use: (settings: ProxySettings) => Promise<void>): Promise<void> {
    const reloaded = this.#running.then(async () => {
      try {
        const settings = await this.#read();
        requireReloadable(current(), settings);
        await use(settings);
        this.problem = undefined;
        this.lastSuccessMs = Date.now();
      } catch (error) {
        this.problem = `cannot reload the configuration: ${messageOf(error)}; the previous one stays in use`;
      }
    });
    this.#running = reloaded;
    return reloaded;
  }
}

/** @throws SettingsProblem for a setting that only a restart changes, or an access rule that a half-written file lacks */
function requireReloadable(before: ProxySettings, { problemAt, ...after }: ProxySettings): void {
  const needsRestart = "needs a restart to change";
  for (const [name, rulesOf] of accessRules) {
    const lost = rulesOf(before).find(([member, isSet]) => isSet && new Map(rulesOf(after)).get(member) === false);
    if (lost !== undefined)
      throw problemAt(name, `is missing${lost[0] && ` for ${lost[0]}`}; restart to serve without ${name}`);
  }
  for (const name of ["host", "port"] as const)
    if (before[name] !== after[name]) throw problemAt(`listen.${name}`, needsRestart);
  if (before.tls?.path !== after.tls?.path) throw problemAt("listen.tls", needsRestart);
  for (const name of ["admin", "trustedProxies", "headerBytes"] as const)
    if (!isDeepStrictEqual(before[name], after[name])) throw problemAt(name, needsRestart);
}

const has = (items: readonly string[] = []): boolean => items.length > 0;
const nameOf = ({ upstream }: ProxySettings["upstreams"][number]): string => String(upstream.addresses);

/** The settings without which more callers are admitted, or more is served: for all calls (""), or for a member. */
const accessRules: readonly (readonly [
  name: string,
  rulesOf: (settings: Omit<ProxySettings, "problemAt">) => readonly (readonly [member: string, isSet: boolean])[],
])[] = [
  ["authentication", ({ authentication }) => [["", authentication !== undefined]]],
  ["authentication.forward", ({ authentication }) => [["", authentication?.forward === false]]],
  ["authentication.scopes", ({ authentication }) => [["", has(Object.keys(authentication?.scopes ?? {}))]]],
  ["authentication.jwt[].type", ({ authentication: a }) => (a?.jwt ?? []).map((of) => [of.issuer, of.type !== "any"])],
  [
    "authentication.introspection.audiences",
    ({ authentication: a }) => [a?.introspection ?? []].flat().map(({ url, audiences }) => [url, has(audiences)]),
  ],
  ["upstreams[].services", ({ upstreams }) => upstreams.map((upstream) => [nameOf(upstream), has(upstream.services)])],
  ["upstreams[].requestHeader.allow", ({ upstreams: all }) => all.map((of) => [nameOf(of), !!of.requestHeader?.allow])],
  [
    "upstreams[].requestHeader.deny",
    // `forward: false` also adds a name to the names that each upstream denies.
    ({ upstreams, authentication: a }) =>
      upstreams.map((of) => [nameOf(of), (of.requestHeader?.deny?.length ?? 0) > Number(a?.forward === false)]),
  ],
  ["visibility", ({ visibility }) => [["", visibility !== undefined]]],
  ["validateReflected", ({ validates }) => [["", validates === "upstreams"]]],
  ["validate", ({ validates }) => [["", validates !== "none"]]],
  ["rateLimit.perAddress", ({ rateLimit }) => [["", rateLimit.perAddress !== undefined]]],
  ["rateLimit.perPrincipal", ({ rateLimit }) => [["", rateLimit.perPrincipal !== undefined]]],
];
