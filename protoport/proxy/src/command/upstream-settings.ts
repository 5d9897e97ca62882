import { pathToFileURL } from "node:url";
import type { DescMethod } from "@bufbuild/protobuf";
import type { ForwardRules, MethodSettings, ProxiedUpstreamOptions } from "../create-proxy.ts";
import {
  type HeaderRulesSection,
  type MethodConfigSection,
  type ReadSettings,
  SettingsProblem,
  type UpstreamSection,
  type UpstreamTlsSection,
} from "../settings/index.ts";
import { findPatternProblems, type UpstreamOptions, type UpstreamTls } from "../upstreams/index.ts";
import { readPem } from "./pem-files.ts";

/** Returns the options of all upstreams. @throws SettingsProblem for contradictions, InputError for an invalid file */
export function toUpstreamOptions(
  read: ReadSettings,
): readonly (ProxiedUpstreamOptions & { readonly upstream: UpstreamOptions })[] {
  const { settings, problemAt, flagOf } = read;
  const { upstreams, methodConfig, authentication, headerBytes, responseBytes } = settings;
  if (upstreams.length === 0) throw problemAt("upstreams", "must contain at least one upstream");
  requireNames(methodConfig, problemAt);
  requireCodes(methodConfig, problemAt);
  requireServices(settings.upstreams, read);
  const methodSettings = toMethodSettings(methodConfig);
  const hidden = authentication?.forward === false ? ["authorization"] : [];
  return upstreams.map((upstream, at) => {
    const path = `upstreams[${at}]`;
    const { descriptors, services, timeoutMs, timeoutMaxMs, retry, reflectionHeader, ...others } = upstream;
    const { tls, requestHeader, responseHeader, ...connection } = others;
    if (connection.addresses.length === 0) throw problemAt(`${path}.addresses`, "must contain at least one address");
    if (descriptors === undefined) throw problemAt(path, "requires descriptors: reflection, or a file");
    const usesHeader = descriptors === "reflection";
    // The flag sets the header for all upstreams, and upstreams without reflection ignore the header.
    if (!usesHeader && Object.keys(reflectionHeader).length > 0 && flagOf(`${path}.reflectionHeader`) === undefined)
      throw problemAt(`${path}.reflectionHeader`, "requires descriptors: reflection");
    if (settings.validate && !settings.validateReflected && descriptors === "reflection")
      throw problemAt(
        `${path}.descriptors`,
        "must be a file unless validateReflected is set, because upstreams may be hostile",
      );
    return {
      upstream: {
        ...connection,
        limits: { headerBytes },
        ...(tls && { tls: upstreamTlsOf(tls, upstream, path, problemAt) }),
      },
      descriptors: descriptors === "reflection" ? descriptors : pathToFileURL(descriptors),
      ...(usesHeader && { reflectionHeader }),
      retry,
      readMaxBytes: responseBytes,
      methodSettings,
      requestHeader: toForwardRules(requestHeader, hidden),
      ...(responseHeader && { responseHeader: toForwardRules(responseHeader, []) }),
      services,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(timeoutMaxMs !== undefined && { maxTimeoutMs: timeoutMaxMs }),
    };
  });
}

/** @throws SettingsProblem if patterns are missing or duplicate; the message contains the lines to add */
function requireServices(upstreams: readonly UpstreamSection[], { problemAt, flagOf }: ReadSettings): void {
  const problems = findPatternProblems(upstreams).map(({ at, other, pattern }) => {
    const path = `upstreams[${at}].services`;
    const [address = ""] = upstreams[at]?.addresses ?? [];
    const flag = `--service '${address}=${pattern ?? "PACKAGE.*"}'`;
    const isFlag = flagOf(path) !== undefined;
    const problem =
      pattern === undefined
        ? `is required because upstreams[${other}] uses reflection, too; add ${isFlag ? flag : 'services: ["PACKAGE.*"]'}`
        : `must not contain "${pattern}", which upstreams[${other}] has, too${isFlag ? `; use ${flag} for one of them` : ""}`;
    return problemAt(path, problem).message;
  });
  if (problems.length > 0) throw new SettingsProblem(problems.join("\n"));
}

/** @throws SettingsProblem for a method without a service, or for a name that occurs twice */
function requireNames(items: ReadSettings["settings"]["methodConfig"], problemAt: ReadSettings["problemAt"]): void {
  const paths = new Map<string, string>();
  const names = items.flatMap(({ name }, at) =>
    name.map((each, index) => ({ ...each, path: `methodConfig[${at}].name[${index}]` })),
  );
  for (const { service, method, path } of names) {
    if (service === "" && method !== "") throw problemAt(`${path}.method`, `requires a service, got only "${method}"`);
    const name = `${service}/${method}`;
    const earlierPath = paths.get(name);
    if (earlierPath !== undefined) throw problemAt(path, `must be unique, but ${earlierPath} names the same RPCs`);
    paths.set(name, path);
  }
}

/** @throws SettingsProblem for a policy without codes, or with more than 16 codes */
function requireCodes(items: ReadSettings["settings"]["methodConfig"], problemAt: ReadSettings["problemAt"]): void {
  for (const [at, { retryPolicy }] of items.entries()) {
    const { length } = retryPolicy?.retryableStatusCodes ?? ["UNAVAILABLE"];
    if (length >= 1 && length <= 16) continue;
    const path = `methodConfig[${at}].retryPolicy.retryableStatusCodes`;
    throw problemAt(path, `must contain between 1 and 16 codes, got ${length}`);
  }
}

function upstreamTlsOf(
  tls: UpstreamTlsSection,
  { addresses }: UpstreamSection,
  path: string,
  problemAt: ReadSettings["problemAt"],
): UpstreamTls {
  const plaintext = addresses.find((address) => /^(?:http|unix):/i.test(address));
  // If the user configures TLS, calls and their credentials must not be sent in plaintext.
  if (plaintext !== undefined)
    throw problemAt(`${path}.tls.${Object.keys(tls)[0] ?? ""}`, `requires an address with TLS, got "${plaintext}"`);
  const { ca, cert, key, ...name } = tls;
  if ((cert === undefined) !== (key === undefined))
    throw problemAt(`${path}.tls.${cert === undefined ? "key" : "cert"}`, "requires both a certificate and its key");
  return {
    ...name,
    ...(ca !== undefined && { ca: readPem(ca) }),
    ...(cert !== undefined && { cert: readPem(cert) }),
    ...(key !== undefined && { key: readPem(key) }),
  };
}

/** @param hidden - field names that are never forwarded */
function toForwardRules(rules: HeaderRulesSection | undefined, hidden: readonly string[]): ForwardRules {
  const { allow, deny = [], rename = {}, set = {} } = rules ?? {};
  const added = Object.keys(set).length === 0 ? undefined : { set: () => set };
  return { ...(allow && { allow }), deny: [...deny, ...hidden], rename, ...added };
}

/**
 * Returns a function that finds a method's settings, as in gRPC's service config. The most specific item applies: for
 * the method, then for the service, then for all services.
 */
function toMethodSettings(items: readonly MethodConfigSection[]): (method: DescMethod) => MethodSettings | undefined {
  const named = items.flatMap((item) => {
    const settings = toSettings(item);
    return item.name.map(({ service, method }): [string, MethodSettings] => [`${service}/${method}`, settings]);
  });
  const byName = new Map(named);
  return ({ parent: { typeName }, name }) =>
    byName.get(`${typeName}/${name}`) ?? byName.get(`${typeName}/`) ?? byName.get("/");
}

function toSettings({ timeout, retryPolicy }: MethodConfigSection): MethodSettings {
  return {
    timeoutMs: timeout,
    maxTimeoutMs: timeout,
    ...(retryPolicy && {
      retry: {
        maxAttempts: retryPolicy.maxAttempts,
        initialBackoffMs: retryPolicy.initialBackoff,
        maxBackoffMs: retryPolicy.maxBackoff,
        backoffMultiplier: retryPolicy.backoffMultiplier,
        retryableCodes: retryPolicy.retryableStatusCodes,
      },
    }),
  };
}
