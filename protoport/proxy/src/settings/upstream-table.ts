import type { Located, SettingType } from "@protoport/command-line/settings";
import { integer, list, mapping, memberPath, ofSource, oneOf, record, text } from "@protoport/command-line/settings";
import type { UpstreamOptions } from "../upstreams/index.ts";
import { fieldValues, newFieldName } from "./field-types.ts";

/** A gRPC service behind the proxy. */
export interface UpstreamSection extends Omit<UpstreamOptions, "addresses" | "tls" | "lookup" | "limits"> {
  readonly addresses: readonly string[];
  readonly descriptors?: string;
  readonly reflectionHeader: Readonly<Record<string, string>>;
  readonly services: readonly string[];
  readonly tls?: UpstreamTlsSection;
  readonly timeoutMs?: number;
  readonly timeoutMaxMs?: number;
  readonly retry: "transparent" | "off";
  readonly requestHeader?: HeaderRulesSection;
  readonly responseHeader?: HeaderRulesSection;
}

/** TLS settings for connections to an upstream. */
export interface UpstreamTlsSection {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** Rules for forwarding header fields in one direction. */
export interface HeaderRulesSection {
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
  readonly rename: Readonly<Record<string, string>>;
  readonly set: Readonly<Record<string, string>>;
}

/** Maximum timeout in milliseconds. A day is enough, because longer calls are streams, which need no deadline. */
export const maxTimeoutMs = 86_400_000;

/** @param exceptions - what the fields do that are not forwarded without `allow` */
const headerRules = (exceptions: string): SettingType<HeaderRulesSection> =>
  mapping<HeaderRulesSection>({
    allow: {
      type: list(text()),
      about: `Fields to forward; \`*\` at the end is a wildcard. Default: all except those that ${exceptions}.`,
    },
    deny: { type: list(text()), fallback: [], about: "Fields not to forward; `*` at the end is a wildcard." },
    rename: {
      type: record(newFieldName),
      fallback: {},
      about: "New names for forwarded fields. Received fields of these names are dropped.",
    },
    set: { type: fieldValues, fallback: {}, about: "Fields to add, which replace forwarded fields." },
  });

const tls = mapping<UpstreamTlsSection>({
  ca: {
    type: text("path"),
    about: "File of certificates to trust instead of the system's. `tls: {}` enables TLS for `dns:` too.",
    flags: [{ name: "upstream-tls-ca", placeholder: "FILE" }],
  },
  cert: {
    type: text("path"),
    about: "File of the client certificate.",
    flags: [{ name: "upstream-tls-cert", placeholder: "FILE" }],
  },
  key: {
    type: text("path"),
    about: "File of the client certificate's key.",
    flags: [{ name: "upstream-tls-key", placeholder: "FILE" }],
  },
  servername: {
    type: text(),
    about: "Name that the upstream's certificate must have.",
    flags: [{ name: "upstream-tls-servername", placeholder: "NAME" }],
  },
});

/** An upstream's settings. */
export const upstreamType: SettingType<UpstreamSection> = mapping<UpstreamSection>({
  addresses: {
    type: list(text("address")),
    required: true,
    about:
      "Its servers, over which calls are balanced: `dns:host:port`, `http://host:port`, `https://host:port` or `unix:/path`.",
  },
  descriptors: {
    type: text("`reflection` or path"),
    about: "`reflection`, or a file that `buf build -o set.binpb` creates.",
    flags: [
      {
        name: "reflection",
        value: "reflection",
        about: "Reads descriptors from the upstream: at the start, when a server is new, and every minute.",
      },
      {
        name: "descriptors",
        placeholder: "FILE",
        about:
          "Reads descriptors from a binary descriptor set instead, and again when it changes. Create it with `buf build -o set.binpb` or `protoc --include_imports --descriptor_set_out=set.binpb`.",
      },
    ],
  },
  reflectionHeader: {
    type: fieldValues,
    fallback: {},
    about: "Header fields of reflection calls, such as a credential.",
    flags: [
      {
        name: "reflect-header",
        placeholder: "FIELD",
        multiple: true,
        about: 'Header field of reflection calls, such as "Authorization: Bearer …".',
        toValue: parseHeaderFields,
      },
    ],
  },
  services: {
    type: list(text()),
    fallback: [],
    about:
      "Full names of services; `*` at the end is a wildcard, and the most specific name of all upstreams applies. Required if several upstreams use reflection. Default: all but reflection and health.",
    flags: [
      {
        name: "service",
        placeholder: "NAME",
        multiple: true,
        about:
          "Serves only services with this full name; `*` at the end is a wildcard. With several upstreams: `ADDRESS=NAME` for the upstream with this address.",
        toValue: toServices,
      },
    ],
  },
  tls: { type: tls, about: "TLS to the upstream; for `dns:`, even an empty mapping enables it." },
  timeoutMs: {
    type: integer(0, maxTimeoutMs),
    about: "Timeout of unary calls without a deadline, 0 for none. Default: `timeoutMaxMs`, otherwise 15000 for REST.",
    flags: [{ name: "timeout-ms", placeholder: "NUMBER" }],
  },
  timeoutMaxMs: {
    type: integer(1, maxTimeoutMs),
    about: "Longest timeout that callers can set.",
    flags: [{ name: "timeout-max-ms", placeholder: "NUMBER" }],
  },
  retry: {
    type: oneOf(["transparent", "off"]),
    fallback: "transparent",
    about: "Whether calls that were certainly not processed are retried once.",
  },
  connections: { type: integer(1, 1_000), about: "Maximum connections to each server. Default 100." },
  keepaliveMs: {
    type: integer(1, maxTimeoutMs),
    about: "Milliseconds without data during calls before a PING. Default 20000.",
  },
  resolveEveryMs: {
    type: integer(1, maxTimeoutMs),
    about: "Milliseconds between look-ups of a `dns:` name while calls are made. Default 30000.",
  },
  healthService: {
    type: text(),
    about: 'Service whose health decides which servers get calls; `""` for the entire server.',
  },
  maxConnectionAgeMs: {
    type: integer(1, maxTimeoutMs),
    about: "Milliseconds after which a connection is replaced, ±10 %.",
  },
  requestHeader: {
    type: headerRules("identify the caller"),
    about: "Which header fields the upstream gets.",
  },
  responseHeader: {
    type: headerRules("control more than a response"),
    about: "Which header fields callers get.",
  },
});

/** Parses header fields such as `Name: value`. Errors do not show the value, which may be a credential. */
function parseHeaderFields(fields: readonly string[], path: string): Located["value"] | Error {
  const header = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    try {
      header.append(field.slice(0, Math.max(colon, 0)), field.slice(colon + 1));
    } catch {
      return new Error('must be a name, a colon and a value, such as "Authorization: Bearer …"');
    }
  }
  return new Map(
    [...header].map(([name, value]) => [name, ofSource(memberPath(path, name), "--reflect-header", value)]),
  );
}

/** Parses service names, and selects the names for one upstream. */
function toServices(
  texts: readonly string[],
  path: string,
  members: ReadonlyMap<string, Located>,
): Located["value"] | undefined {
  const addresses = members.get("addresses")?.value;
  const own = new Set(Array.isArray(addresses) ? addresses.map((each: Located) => each.value) : []);
  const names = texts.map(parseServiceFlag).filter(({ address }) => address === undefined || own.has(address));
  if (names.length === 0) return undefined;
  return names.map(({ name }, at) => ofSource(`${path}[${at}]`, "--service", name));
}

/** Splits `ADDRESS=NAME`. Names do not contain `=`, but a Unix socket's path may. */
export function parseServiceFlag(given: string): { readonly address: string | undefined; readonly name: string } {
  const at = given.lastIndexOf("=");
  return { address: at < 0 ? undefined : given.slice(0, at), name: given.slice(at + 1) };
}
