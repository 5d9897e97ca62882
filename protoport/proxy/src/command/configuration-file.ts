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
  if (before.host !== after.host) throw problemAt("listen.host", needsRestart);
  if (before.port !== after.port) throw problemAt("listen.port", needsRestart);
  if (before.tls?.path !== after.tls?.path) throw problemAt("listen.tls", needsRestart);
  if (!isDeepStrictEqual(before.admin, after.admin)) throw problemAt("admin", needsRestart);
  if (!isDeepStrictEqual(before.trustedProxies, after.trustedProxies)) throw problemAt("trustedProxies", needsRestart);
  if (before.headerBytes !== after.headerBytes) throw problemAt("headerBytes", needsRestart);
}

const has = (items: readonly string[] = []): boolean => items.length > 0;

/** The settings without which more callers are admitted, or more is served: for all calls (""), or for a member. */
const accessRules: readonly (readonly [
  name: string,
  rulesOf: (settings: Omit<ProxySettings, "problemAt">) => readonly (readonly [member: string, isSet: boolean])[],
])[] = [
  ["authentication", ({ authentication }) => [["", authentication !== undefined]]],
  ["authentication.scopes", ({ authentication }) => [["", has(Object.keys(authentication?.scopes ?? {}))]]],
  [
    "authentication.jwt[].type",
    ({ authentication: { jwt = [] } = {} }) => jwt.map((each) => [each.issuer, each.type !== "any"]),
  ],
  [
    "authentication.introspection.audiences",
    ({ authentication: { introspection } = {} }) =>
      introspection === undefined ? [] : [[introspection.url, has(introspection.audiences)]],
  ],
  ["upstreams[].services", ({ upstreams }) => upstreams.map((of) => [String(of.upstream.addresses), has(of.services)])],
  ["visibility", ({ visibility }) => [["", visibility !== undefined]]],
  ["validateReflected", ({ validates }) => [["", validates === "upstreams"]]],
  ["validate", ({ validates }) => [["", validates !== "none"]]],
  ["rateLimit.perAddress", ({ rateLimit }) => [["", rateLimit.perAddress !== undefined]]],
  ["rateLimit.perPrincipal", ({ rateLimit }) => [["", rateLimit.perPrincipal !== undefined]]],
];
