import { isIP } from "node:net";
import type { AdmitRequest } from "@plantstore/gateway/internal/serve";
import {
  type HeaderFields,
  isToken,
  notForwarded,
  readHeaderField,
  type RememberedFields,
  requireField,
} from "@plantstore/gateway/exchange";
import type { RequestFields } from "../client/index.ts";
import { clipped, problem, withCode } from "@plantstore/gateway/internal/errors";
import { type OptionNames, refusePromise } from "@plantstore/gateway/options";

/**
 * Which header fields are passed on, in one direction. Names are compared without regard to case.
 *
 * Never passed on: what describes a connection or a message (RFC 9110 §7.6.1), what the field Connection names, what
 * belongs to gRPC, Connect and browsers, cookies, and fields that name the client of a proxy, which anybody can forge.
 *
 * X-Forwarded-For has the address of the caller instead, as trusted proxies name it, unless rules leave that field out.
 */
export interface ForwardRules {
  /** The names that pass; a text may end in `*`. Default: all. */
  readonly allow?: readonly (string | RegExp)[];
  /** The names that do not pass, of those allowed. */
  readonly deny?: readonly (string | RegExp)[];
  /** Other names for fields that pass. */
  readonly rename?: Readonly<Record<string, string>>;
  /**
   * Returns fields to add, in the place of those with the same names: also such as are not passed on, but those of a
   * connection, of a message and of gRPC. One that is `undefined` is left out. What it throws is a fault.
   */
  readonly set?: (request: AdmitRequest) => Readonly<Record<string, string | undefined>>;
}

/** The names of {@link ForwardRules}. */
export const forwardRulesNames: OptionNames<ForwardRules> = { allow: true, deny: true, rename: true, set: true };

/** Fields to add, or with `undefined` to leave out, by their names in lower case. */
export type AddedFields = ReadonlyMap<string, string | undefined>;

/** {@link ForwardRules}, compiled. */
export interface ForwardedFields {
  /** Returns the fields to add for a request. Throws what the program does, and TypeError for names that none may have. */
  readonly added: (request: AdmitRequest) => AddedFields;
  /** Returns the fields to forward of a list. */
  readonly of: (fields: RememberedFields, added: AddedFields) => RequestFields;
}

// A pseudo-header field, or one of gRPC: nobody sets it by hand.
const protocolPrefix = /^(?::|grpc-)/;

function isProtocolField(name: string): boolean {
  return notForwarded.has(name) || protocolPrefix.test(name);
}

/** What is said to this server alone, and what anybody can say of a client. */
const requestFields =
  /^(?:access-control-|connect-|content-|proxy-|sec-|x-envoy-|x-forwarded-|x-original-|(?:accept|accept-charset|accept-encoding|cf-connecting-ip|cf-connecting-ipv6|client-ip|cookie|expect|fastly-client-ip|forwarded|forwarded-for|max-forwards|priority|true-client-ip|via|x-azure-clientip|x-client-ip|x-cluster-client-ip|x-forwarded|x-grpc-web|x-real-ip|x-server-timeout)$)/;

/** What this server says itself. */
const answerFields = /^(?:access-control-|connect-|proxy-|(?:alt-svc|date|server|set-cookie|via)$)/;

/** Fields that are never passed on, by the direction of a message. */
const ownFields = { request: requestFields, answer: answerFields };

/** What says who calls, to whoever is behind a proxy. */
const clientField = "x-forwarded-for";

/** How many names, or addresses, are remembered. 1,000: more than most have, and few enough for those made up. */
const rememberedMax = 1_000;

/** No fields to add. */
export const nothing: AddedFields = new Map();

/**
 * Compiles rules.
 *
 * @throws TypeError for a new name that no field may have
 */
export function compileForwardRules(direction: "request" | "answer", rules: ForwardRules = {}): ForwardedFields {
  const allow = rules.allow?.map(toMatcher);
  const deny = (rules.deny ?? []).map(toMatcher);
  const { set } = rules;
  const rename = new Map(
    Object.entries(rules.rename ?? {}).map(([from, to]) => [from.toLowerCase(), to.toLowerCase()]),
  );
  for (const name of rename.values()) requireSettable(name);
  const byRules = (name: string): string | undefined => {
    if (allow !== undefined && !allow.some((matches) => matches(name))) return undefined;
    if (deny.some((matches) => matches(name))) return undefined;
    return rename.get(name) ?? name;
  };
  const clientName = direction === "request" ? byRules(clientField) : undefined;
  const clientOf = clientName === undefined ? undefined : rememberClients(clientName);
  const choose = (name: string): string | undefined => {
    if (isProtocolField(name) || ownFields[direction].test(name)) return undefined;
    const chosen = byRules(name);
    // By the name that says who calls, nothing else is passed on, whether or not there is an address to say.
    return chosen === clientName ? undefined : chosen;
  };
  const remembered = new Map<string, string | undefined>();
  const nameOf = (sent: string): string | undefined => {
    if (remembered.has(sent)) return remembered.get(sent);
    const name = choose(sent.toLowerCase());
    if (remembered.size < rememberedMax) remembered.set(sent, name);
    return name;
  };
  return {
    added: (request) => {
      const ofClient = clientOf === undefined ? nothing : clientOf(request.peer.address);
      if (set === undefined) return ofClient;
      const added = new Map(ofClient);
      const fields = refusePromise(set(request), "the set of metadata must return its result");
      for (const [name, value] of Object.entries(fields)) {
        requireSettable(name.toLowerCase());
        if (value !== undefined) requireField(name, value);
        added.set(name.toLowerCase(), value);
      }
      return added;
    },
    of: rememberForwarded((fields, added) => {
      const passed: string[] = [];
      const ofConnection = namesOfConnection(fields);
      for (let at = 0; at < fields.length; at += 2) {
        const sent = fields[at] ?? "";
        const name = nameOf(sent);
        if (name === undefined || added.has(name) || ofConnection?.has(sent.toLowerCase()) === true) continue;
        const value = fields[at + 1] ?? "";
        if (direction === "request" && name.endsWith("-bin")) requireBase64(sent, value);
        passed.push(name, value);
      }
      for (const [name, value] of added) if (value !== undefined) passed.push(name, value);
      return passed;
    }),
  };
}

/** RFC 9110 §7.6.1: the fields that the sender says are for its connection alone. */
function namesOfConnection(fields: HeaderFields): ReadonlySet<string> | undefined {
  const value = readHeaderField(fields, "connection");
  // What nearly all connections of HTTP/1.1 say.
  if (value === null || value === "keep-alive" || value === "close") return undefined;
  return new Set(value.split(",").map((name) => name.trim().toLowerCase()));
}

/** What was forwarded of a list of fields. */
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

/** Remembers what is forwarded of a list, for as long as the list. */
function rememberForwarded(choose: (fields: HeaderFields, added: AddedFields) => string[]): ForwardedFields["of"] {
  return (list, added) => {
    const known = list.derived;
    if (known instanceof Forwarded && known.choose === choose && known.added === added) {
      // No test can tell: it saves to encode them again.
      known.fields.isShared = true;
      return known.fields;
    }
    const fields = choose(list, added);
    const namesProgram = fields.some((name, at) => at % 2 === 0 && name === "user-agent");
    const forwarded = new Forwarded(choose, added, { fields, namesProgram, isShared: false });
    list.derived = forwarded;
    return forwarded.fields;
  };
}

/** Remembers what says who calls, which is the same object for all calls from one address. */
function rememberClients(name: string): (address: string) => AddedFields {
  const known = new Map<string, AddedFields>();
  return (address) => {
    let fields = known.get(address);
    if (fields !== undefined) return fields;
    const client = addressOf(address);
    fields = new Map(client === undefined ? [] : [[name, client]]);
    if (known.size >= rememberedMax) known.clear();
    known.set(address, fields);
    return fields;
  };
}

/** Returns the address of a caller, if it has one: behind a Unix socket it has none. */
function addressOf(address: string): string | undefined {
  if (isIP(address) === 0) return undefined;
  // RFC 4291 §2.5.5.2: how a socket for both kinds names an IPv4 address.
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

// gRPC over HTTP/2, "Binary-Header": base64 with or without padding.
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/** @throws ConnectError `InvalidArgument`: servers of gRPC end such a call with a code of their own each */
function requireBase64(name: string, value: string): void {
  // Several values may be joined by commas.
  if (value.split(",").every((each) => base64.test(each.trim()))) return;
  throw problem("ERR_PROTOCOL", `the header field ${clipped(name)} is not valid base64`);
}

/** Returns what tells whether a name, in lower case, is meant by a pattern. */
function toMatcher(pattern: string | RegExp): (name: string) => boolean {
  if (typeof pattern !== "string") {
    // With the flags g or y, a RegExp goes on where it has found something last.
    const own = new RegExp(pattern.source, `${pattern.flags.replaceAll(/[giy]/g, "")}i`);
    return (name) => own.test(name);
  }
  const text = pattern.toLowerCase();
  return text.endsWith("*") ? (name) => name.startsWith(text.slice(0, -1)) : (name) => name === text;
}

function requireSettable(name: string): void {
  if (isToken(name) && !isProtocolField(name)) return;
  throw withCode(new TypeError(`no field that is passed on may be named "${name}"`), "ERR_OPTIONS");
}
