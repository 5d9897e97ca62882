import { isIP } from "node:net";
import type { AdmitRequest } from "@protoport/gateway";
import { type HeaderFields, readHeaderField, type CachedFields, requireField } from "@protoport/gateway/exchange";
import { toShortLine, withCode, problem } from "@protoport/gateway/errors";
import { type OptionNames, refusePromise, matcherOf } from "@protoport/gateway/options";
import type { RequestFields } from "../client/index.ts";
import { isControlField } from "./control-fields.ts";
import { isIdentityField } from "./identity-fields.ts";
import { isProtocolField, isSettable } from "../upstreams/index.ts";

/**
 * Rules for forwarding header fields in one direction. Names are case-insensitive. A received name with underscores is
 * also compared with hyphens. A name in `allow` or `rename` that has no effect is refused.
 *
 * Never forwarded are cookies, fields for a connection or a message (RFC 9110 §7.6.1), fields that Connection lists,
 * and fields for gRPC, Connect and browsers. Request fields that identify a caller, such as `x-real-ip`, are forwarded
 * only if `allow` contains exactly their name, because anyone can send them. Response fields that control more than
 * their response, such as `location` and `clear-site-data`, also require their exact name, because all upstreams share
 * the proxy's origin. protoport/docs/reference/proxy-configuration.md lists both field groups.
 *
 * Over MCP, `authorization` is forwarded only if `allow` contains exactly this name or `set` sets it. An MCP client's
 * token is intended for this server, and must not be passed on (MCP, "Token Handling").
 *
 * X-Forwarded-For is set to the caller's address, and X-Forwarded-Host to the called host, unless rules exclude the
 * field. Trusted proxies determine the address and the host.
 */
export interface ForwardRules {
  /**
   * Names that are forwarded. A string may end in `*`. By default, all fields are forwarded except the two lists in
   * protoport/docs/reference/proxy-configuration.md.
   */
  readonly allow?: readonly (string | RegExp)[];
  /** Field names that are not forwarded, with hyphens or underscores, even if `allow` contains the names. */
  readonly deny?: readonly (string | RegExp)[];
  /** New names for forwarded fields. Fields that are received under a new name are not forwarded. */
  readonly rename?: Readonly<Record<string, string>>;
  /**
   * Returns fields to set, which replace forwarded fields with the same names. Fields for a connection, a message or
   * gRPC cannot be set. The value `undefined` removes a field. An error that this function throws is reported as a
   * fault.
   */
  readonly set?: (request: AdmitRequest) => Readonly<Record<string, string | undefined>>;
}

/** The member names in {@link ForwardRules}. */
export const forwardRulesNames: OptionNames<ForwardRules> = { allow: true, deny: true, rename: true, set: true };

/** Fields to set, by their names in lower case. The value `undefined` removes a field. */
export type AddedFields = ReadonlyMap<string, string | undefined>;

/** The compiled {@link ForwardRules}. */
export interface ForwardedFields {
  /** Whether an MCP client's credential is forwarded. */
  readonly forwardsMcpCredential: boolean;
  /** Returns whether a request field in lower case identifies the caller, also by its new name. */
  readonly isIdentityField: (name: string) => boolean;
  /** Returns the fields to set for a request. @throws the `set` error, or TypeError for a name that must not be set */
  readonly added: (request: AdmitRequest) => AddedFields;
  readonly select: (fields: CachedFields, added: AddedFields) => RequestFields;
}

/** Request fields that are intended only for this server. */
const blockedRequestFields =
  /^(?:access-control-|connect-|content-|proxy-|sec-|(?:accept|accept-charset|accept-encoding|cookie|expect|max-forwards|priority|via|x-grpc-web|x-server-timeout)$)/;

/** Response fields that this server sets itself. */
const blockedResponseFields = /^(?:access-control-|connect-|proxy-|(?:alt-svc|date|server|set-cookie|via)$)/;

type Direction = "request" | "response";

/** Fields that are never forwarded, by direction. */
const blockedFields = { request: blockedRequestFields, response: blockedResponseFields };

/** Functions that return whether `allow` must contain exactly a field's name, by direction. */
const needsExactName = { request: isIdentityField, response: isControlField };

/** The field names for the client's address and the called host, for the server behind a proxy. */
const clientField = "x-forwarded-for";
const hostField = "x-forwarded-host";

/** Maximum cached names or addresses. 1,000 is more than most servers see, and bounds memory for invented names. */
const maxCached = 1_000;

/** No fields to set. */
export const noAddedFields: AddedFields = new Map();

/** Compiles rules. @throws TypeError if `rename` contains a new name that must not be set */
export function compileForwardRules(direction: Direction, rules: ForwardRules = {}): ForwardedFields {
  const allow = rules.allow?.map(toMatcher);
  const deny = (rules.deny ?? []).map((each) => toMatcher(typeof each === "string" ? hyphenated(each) : each));
  const { set } = rules;
  const rename = new Map(
    Object.entries(rules.rename ?? {}).map(([from, to]) => [from.toLowerCase(), to.toLowerCase()]),
  );
  for (const name of rename.values()) requireSettable(name);
  const exactlyAllowed = exactNames(rules);
  const isBlocked = createBlocker(direction, rename, exactlyAllowed);
  const nameByRules = (name: string): string | undefined => {
    if (allow !== undefined && !allow.some((matches) => matches(name))) return undefined;
    const spellings = [name, hyphenated(name), name.replaceAll("-", "_")];
    if (deny.some((matches) => spellings.some(matches))) return undefined;
    return rename.get(name) ?? name;
  };
  const clientName = direction === "request" ? nameByRules(clientField) : undefined;
  const hostName = direction === "request" ? nameByRules(hostField) : undefined;
  const clientNames = [clientName, hostName].map((name) => name && hyphenated(name));
  const clientFieldsOf = cacheClientFields(clientName, hostName);
  const choose = (name: string): string | undefined => {
    if (isBlocked(name)) return undefined;
    const newName = nameByRules(name);
    // A received field is never forwarded under a client field's name, because the proxy sets no client field for a
    // client without an address, and that client could forge the field.
    return newName === undefined || clientNames.includes(hyphenated(newName)) ? undefined : newName;
  };
  const cache = new Map<string, string | undefined>();
  const nameOf = (sent: string): string | undefined => {
    if (cache.has(sent)) return cache.get(sent);
    const name = choose(sent.toLowerCase());
    if (cache.size < maxCached) cache.set(sent, name);
    return name;
  };
  return {
    forwardsMcpCredential: exactlyAllowed.has("authorization"),
    isIdentityField: (name) => [name, rename.get(name) ?? ""].some((each) => isIdentityField(hyphenated(each))),
    added: (request) => {
      const clientFields = clientFieldsOf(request);
      if (set === undefined) return clientFields;
      const fields = refusePromise(set(request), `${direction}Header.set must be synchronous`);
      return addFields(Object.entries(fields).map(requireSetField), clientFields);
    },
    select: withFieldCache((fields, added) => {
      const forwarded: string[] = [];
      const connectionNames = namesOfConnection(fields);
      for (let at = 0; at < fields.length; at += 2) {
        const sent = fields[at] ?? "";
        const name = nameOf(sent);
        if (name === undefined || isReplaced(name, added) || connectionNames?.has(sent.toLowerCase()) === true)
          continue;
        const value = fields[at + 1] ?? "";
        if (direction === "request" && name.endsWith("-bin")) requireBase64(sent, value);
        forwarded.push(name, value);
      }
      for (const [name, value] of added) if (value !== undefined) forwarded.push(name, value);
      return forwarded;
    }),
  };
}

/** Returns the names that `allow` contains without a wildcard, in lower case. */
function exactNames({ allow = [] }: ForwardRules): ReadonlySet<string> {
  return new Set(allow.flatMap((name) => (typeof name === "string" ? [name.toLowerCase()] : [])));
}

/** Returns the fields to set, without received fields whose names differ only in hyphens. */
function addFields(fields: readonly [string, string | undefined][], clientFields: AddedFields): AddedFields {
  const withUnderscores = fields.filter(([name]) => name.includes("_"));
  const removed = withUnderscores.map(([name]) => [hyphenated(name), undefined] as const);
  return new Map([...removed, ...clientFields, ...fields]);
}

/** Returns whether a forwarded field has the name of an added field. */
function isReplaced(name: string, added: AddedFields): boolean {
  return added.has(name) || (name.includes("_") && added.has(hyphenated(name)));
}

/** Returns a name with hyphens. Many servers do not distinguish underscores and hyphens (RFC 3875 §4.1.18). */
function hyphenated(name: string): string {
  return name.replaceAll("_", "-");
}

/** Returns whether no rule forwards a field. @param name - in lower case */
function isNeverForwarded(direction: Direction, name: string): boolean {
  return isProtocolField(hyphenated(name)) || blockedFields[direction].test(hyphenated(name));
}

/** Creates a function that returns whether a field must not be forwarded under its own name. */
function createBlocker(
  direction: Direction,
  rename: ReadonlyMap<string, string>,
  exactlyAllowed: ReadonlySet<string>,
): (name: string) => boolean {
  const names = new Set([...rename].flat().map(hyphenated));
  return (name) => {
    if (isNeverForwarded(direction, name)) return true;
    if (needsExactName[direction](hyphenated(name)) && !exactlyAllowed.has(name)) return true;
    // A field with another field's new name could forge the renamed field, and one with another spelling of its old name
    // would not be renamed.
    return names.has(hyphenated(name)) && !rename.has(name);
  };
}

/**
 * Refuses names in `allow` and `rename` that have no effect.
 *
 * @param path - the rules' option, for the error
 * @throws TypeError for a field that is never forwarded, or only if `allow` contains its exact name
 */
export function requireEffect(direction: Direction, rules: ForwardRules = {}, path: string): void {
  const { allow = [], rename = {} } = rules;
  const allowed = allow.map((pattern, at) => [`allow[${at}]`, pattern] as const);
  const renamed = Object.keys(rename).map((name) => [`rename.${name}`, name] as const);
  const exactlyAllowed = exactNames(rules);
  for (const [member, pattern] of [...allowed, ...renamed]) {
    // Any field can match a RegExp, and the proxy sets the client's fields itself.
    if (typeof pattern !== "string" || [clientField, hostField, "grpc-trace-bin"].some(toMatcher(pattern))) continue;
    const name = pattern.toLowerCase().replace(/\*$/, "x");
    const isNever = isNeverForwarded(direction, name);
    if (!isNever && (exactlyAllowed.has(name) || !needsExactName[direction](hyphenated(name)))) continue;
    const reason = isNever
      ? "must match a field that can be forwarded"
      : "has no effect unless allow contains the exact name";
    throw withCode(new TypeError(`${path}.${member} ${reason}, got ${JSON.stringify(pattern)}`), "ERR_OPTIONS");
  }
}

/** Returns the field names that Connection lists. Listed fields are for one connection only (RFC 9110 §7.6.1). */
function namesOfConnection(fields: HeaderFields): ReadonlySet<string> | undefined {
  const value = readHeaderField(fields, "connection");
  // Nearly all HTTP/1.1 requests have no other value.
  if (value === null || value === "keep-alive" || value === "close") return undefined;
  return new Set(value.split(",").map((name) => name.trim().toLowerCase()));
}

class Forwarded {
  readonly choose: unknown;
  readonly added: AddedFields;
  readonly fields: RequestFields;

  constructor(choose: unknown, added: AddedFields, fields: RequestFields) {
    this.choose = choose;
    this.added = added;
    this.fields = fields;
  }
}

/** Wraps `choose` in a cache. The result is stored in the field list, as `derived`. */
function withFieldCache(choose: (fields: HeaderFields, added: AddedFields) => string[]): ForwardedFields["select"] {
  return (list, added) => {
    const cached = list.derived;
    if (cached instanceof Forwarded && cached.choose === choose && cached.added === added) {
      // equivalent mutant: `isShared` only avoids encoding the fields again.
      cached.fields.isShared = true;
      return cached.fields;
    }
    const fields = choose(list, added);
    const hasUserAgent = fields.some((name, at) => at % 2 === 0 && name === "user-agent");
    const forwarded = new Forwarded(choose, added, { fields, hasUserAgent, isShared: false });
    list.derived = forwarded;
    return forwarded.fields;
  };
}

/**
 * Caches the client fields, so that all calls from one address to one host share one object. The maps are nested,
 * so that calls need not build a joined key.
 */
function cacheClientFields(
  clientName: string | undefined,
  hostName: string | undefined,
): (request: AdmitRequest) => AddedFields {
  if (clientName === undefined && hostName === undefined) return () => noAddedFields;
  const cache = new Map<string, Map<string, AddedFields>>();
  let size = 0;
  return ({ peer: { address }, origin }) => {
    const cached = cache.get(origin)?.get(address);
    if (cached !== undefined) return cached;
    const fields = new Map<string, string>();
    const client = addressOf(address);
    const host = origin.replace(/^.*?:\/\//, "");
    if (clientName !== undefined && client !== undefined) fields.set(clientName, client);
    if (hostName !== undefined && host !== "") fields.set(hostName, host);
    if (size >= maxCached) {
      cache.clear();
      size = 0;
    }
    size++;
    const byAddress = cache.get(origin) ?? new Map<string, AddedFields>();
    cache.set(origin, byAddress.set(address, fields));
    return fields;
  };
}

/** Returns a caller's IP address, or `undefined` on a Unix socket. */
function addressOf(address: string): string | undefined {
  if (isIP(address) === 0) return undefined;
  // An IPv4 address on a dual-stack socket (RFC 4291 §2.5.5.2).
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

// Matches base64 with or without padding (gRPC over HTTP/2, "Binary-Header").
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/** @throws ConnectError `InvalidArgument` for invalid base64, because gRPC servers return different codes */
function requireBase64(name: string, value: string): void {
  // A field value may contain several values, joined by commas.
  if (value.split(",").every((each) => base64.test(each.trim()))) return;
  throw problem("ERR_PROTOCOL", `the header field ${toShortLine(name)} is not valid base64`);
}

/** Returns a function that matches lower-case names with a pattern. */
function toMatcher(pattern: string | RegExp): (name: string) => boolean {
  if (typeof pattern !== "string") {
    // The flags g and y are removed, because RegExps with g or y start after the last match.
    const stateless = new RegExp(pattern.source, `${pattern.flags.replaceAll(/[giy]/g, "")}i`);
    return (name) => stateless.test(name);
  }
  return matcherOf([pattern.toLowerCase()]);
}

/** Returns a field that `set` returned, with its name in lower case. @throws TypeError if it must not be set */
function requireSetField([name, value]: [string, string | undefined]): [string, string | undefined] {
  requireSettable(name.toLowerCase());
  if (value !== undefined) requireField(name, value);
  return [name.toLowerCase(), value];
}

function requireSettable(name: string): void {
  if (isSettable(name)) return;
  throw withCode(new TypeError(`rename and set must name a field that can be forwarded, got "${name}"`), "ERR_OPTIONS");
}
