import type { SettingType } from "@protoport/command-line/settings";
import {
  boolean,
  integer,
  list,
  mapping,
  number,
  ofSource,
  oneOf,
  record,
  text,
} from "@protoport/command-line/settings";
import { maxDrainMs, drainTimesDefault } from "@protoport/gateway/health";
import { defaultReadMaxBytes } from "@protoport/gateway/exchange";
import { operationIdsType, profileNames, splitSwitches, switchNames } from "../definitions/index.ts";
import { authenticationType } from "./authentication-table.ts";
import { errorBody, fieldName, originOrAny } from "./field-types.ts";
import { methodConfigType } from "./method-config-table.ts";
import type {
  CorsSection,
  JsonSection,
  ListenSection,
  OpenApiSection,
  ProxyConfiguration,
  RateLimitSection,
  RestSection,
  RestServiceSection,
} from "./proxy-configuration.ts";
import { upstreamLimits } from "../upstreams/index.ts";
import { upstreamType } from "./upstream-table.ts";

/** The upper bound for message sizes in bytes. Most messages are held in memory, and protobuf's limit is 2 GiB. */
const maxMessageBytes = 1_073_741_824;

const port = integer(0, 65_535);

/** Calls per second. The maximum is more than a process can serve, so that a higher rate would have no effect. */
const rate = number(0.001, 1_000_000);

const profile = oneOf(profileNames);

const listen = mapping<ListenSection>({
  host: {
    type: text("address"),
    fallback: "127.0.0.1",
    about: "Address to listen on, `::` for all addresses.",
    flags: [{ name: "host", placeholder: "ADDRESS" }],
  },
  port: { type: port, fallback: 8080, about: "Port to listen on.", flags: [{ name: "port", placeholder: "NUMBER" }] },
  tls: {
    type: mapping<NonNullable<ListenSection["tls"]>>({
      cert: {
        type: text("path"),
        about: "File of the certificate chain to serve TLS with; read again on SIGHUP.",
        flags: [{ name: "tls-cert", placeholder: "FILE" }],
      },
      key: {
        type: text("path"),
        about: "File of the certificate's private key.",
        flags: [{ name: "tls-key", placeholder: "FILE" }],
      },
    }),
    about: "TLS of callers. Default: none.",
  },
});

const json = mapping<JsonSection>({
  names: {
    type: oneOf(["json", "proto"]),
    fallback: "json",
    about: "Names of fields: `json` such as `bookId`, or `proto` as in the definition.",
  },
  enums: { type: oneOf(["names", "numbers"]), fallback: "names", about: "How enum values are written." },
  unpopulated: {
    type: boolean,
    about: "Whether fields with default values are written. Default: as in the profile.",
  },
  int64: {
    type: oneOf(["strings", "numbers"]),
    fallback: "strings",
    about: "How 64-bit integers are written on REST. Those beyond 2^53 stay strings.",
  },
});

const rest = mapping<RestSection>({
  profile: {
    type: profile,
    fallback: "strict",
    about: "Preset for clients of another gateway.",
    flags: [{ name: "rest-profile", placeholder: "NAME" }],
  },
  errors: {
    type: oneOf(["status", "google", "problem"]),
    about: "Form of errors: google.rpc.Status, as of Google's APIs, or problem details. Default: as in the profile.",
  },
  errorBody: {
    type: errorBody,
    about:
      "The JSON of errors, in which `{code}`, `{number}`, `{message}`, `{details}` and `{httpStatus}` are placeholders. Excludes `errors`.",
  },
  json: { type: json, implied: true, about: "How responses are written as JSON, on Connect too." },
  options: {
    type: list(oneOf(switchNames)),
    fallback: [],
    about: "Options of REST to enable for all services, such as `lenient`.",
    flags: [
      {
        name: "rest",
        placeholder: "OPTION",
        multiple: true,
        toValue: (texts, path) => splitSwitches(texts).map((name, at) => ofSource(`${path}[${at}]`, "--rest", name)),
      },
    ],
  },
  services: {
    type: list(
      mapping<RestServiceSection>({
        name: { type: text(), required: true, about: "Full name of the service; `*` at the end is a wildcard." },
        profile: { type: profile, about: "Preset of the service. Default: `rest.profile`." },
        options: {
          type: list(oneOf(switchNames)),
          fallback: [],
          about: "Options to enable, in addition to `rest.options`.",
        },
      }),
    ),
    fallback: [],
    about: "Options of single services; the first item whose name matches applies.",
  },
  rules: {
    type: list(text("path")),
    fallback: [],
    about: "Files of HTTP rules that replace annotations: service configs in YAML or JSON.",
    flags: [{ name: "rules", placeholder: "FILE", multiple: true }],
  },
  omit: {
    type: list(text()),
    fallback: [],
    about: "RPCs to exclude from REST, as `package.Service.Method`.",
    flags: [{ name: "omit", placeholder: "RPC", multiple: true }],
  },
});

const cors = mapping<CorsSection>({
  origins: {
    type: list(originOrAny),
    required: true,
    about: "Origins whose pages may call the proxy; `*` for all origins.",
    flags: [{ name: "cors", placeholder: "ORIGIN", multiple: true }],
  },
  allowedHeaders: {
    type: list(fieldName),
    fallback: [],
    about: "Header fields that pages may send in addition to those of the protocols.",
  },
  exposedHeaders: {
    type: list(fieldName),
    fallback: [],
    about: "Header fields that pages may read in addition to those of the protocols.",
  },
  maxAgeSeconds: { type: integer(0, 86_400), about: "Seconds that browsers may cache a preflight. Default 7200." },
});

/**
 * The proxy's settings. The reader, `--check`, the JSON Schema, protoport/docs/reference/proxy-configuration.md and `--help` are
 * derived from this table.
 */
export const proxyConfigurationType: SettingType<ProxyConfiguration> = mapping<ProxyConfiguration>({
  listen: { type: listen, implied: true, about: "Where callers connect." },
  admin: {
    type: mapping<ProxyConfiguration["admin"]>({
      host: { type: text("address"), about: "Address of the port. Default: `listen.host`." },
      port: {
        type: port,
        about: "Port that serves `/livez`, `/readyz` and `/metrics`. Default: none.",
        flags: [{ name: "admin-port", placeholder: "NUMBER" }],
      },
    }),
    implied: true,
    about: "Health and metrics.",
  },
  upstreams: {
    type: list(upstreamType),
    required: true,
    about: "The gRPC services behind the proxy.",
    flags: [
      {
        name: "upstream",
        placeholder: "ADDRESS",
        multiple: true,
        about:
          "Where the service is: `dns:host:port`, `http://host:port`, `https://host:port` or `unix:/path`; repeat it for several, each with reflection and `--service ADDRESS=NAME`.",
        toValue: (addresses, path) =>
          addresses.map((address, at) =>
            ofSource(
              `${path}[${at}]`,
              "--upstream",
              new Map([
                [
                  "addresses",
                  ofSource(`${path}[${at}].addresses`, "--upstream", [
                    ofSource(`${path}[${at}].addresses[0]`, "--upstream", address),
                  ]),
                ],
              ]),
            ),
          ),
      },
    ],
  },
  methodConfig: {
    type: methodConfigType,
    fallback: [],
    about: "Timeouts and retries of services and methods, in the form of gRPC's service config.",
  },
  rest: { type: rest, implied: true, about: "How RPCs are mapped to REST." },
  authentication: {
    type: authenticationType,
    about: "Which credentials callers need. Default: none; the upstream checks them.",
  },
  rateLimit: {
    type: mapping<RateLimitSection>({
      perPrincipal: { type: rate, about: "Calls per second of each authenticated caller. Default: unlimited." },
      perAddress: { type: rate, about: "Calls per second of each IP address or IPv6 /64 network. Default: unlimited." },
    }),
    implied: true,
    about: "Rates, which are also the size of a burst.",
  },
  cors: { type: cors, about: "Calls by pages of other origins. Default: refused." },
  trustedProxies: {
    type: list(text()),
    about: "IP addresses and networks of proxies whose `X-Forwarded-For` is trusted. Default: none.",
  },
  headerBytes: {
    type: integer(4_096, 1_048_576),
    fallback: upstreamLimits.headerBytes,
    about: "Largest header of a request, and header or trailer of a response, in bytes.",
    flags: [{ name: "header-bytes", placeholder: "NUMBER" }],
  },
  requestBytes: {
    type: integer(1_024, maxMessageBytes),
    fallback: defaultReadMaxBytes,
    about: "Largest request message in bytes, compressed or not. gRPC messages above 64 KiB are forwarded in parts.",
    flags: [{ name: "request-bytes", placeholder: "NUMBER" }],
  },
  responseBytes: {
    type: integer(1_024, maxMessageBytes),
    fallback: defaultReadMaxBytes,
    about: "Largest response message of an upstream in bytes, compressed or not. Forwarded in parts like requests.",
    flags: [{ name: "response-bytes", placeholder: "NUMBER" }],
  },
  docs: {
    type: boolean,
    fallback: true,
    about:
      "Whether the description at `/openapi.json` and the page at `/docs` are served, to callers without a credential too.",
    flags: [
      { name: "no-docs", value: false, about: "Disables the description at `/openapi.json` and the page at `/docs`." },
    ],
  },
  openapi: {
    type: mapping<OpenApiSection>({
      title: {
        type: text(),
        about: "Title of the API. Default: that of the definition, or the names of the services.",
      },
      version: { type: text(), about: "Version of the API. Default: that of the definition, or 1.0.0." },
      license: {
        type: mapping<NonNullable<OpenApiSection["license"]>>({
          name: { type: text(), required: true, about: "Name of the license." },
          identifier: { type: text(), about: "SPDX expression, such as `MIT`. Excludes `url`." },
          url: { type: text("URL"), about: "URL of the license. Excludes `identifier`." },
        }),
        about: "License of the API. Default: that of the definition.",
      },
      operationIds: {
        type: operationIdsType,
        fallback: "service",
        about:
          "Names in operation ids: `service` such as `v1_Shop_getOrder`, `rpc` such as `getOrder`, or `full` with the package. Equal ids are refused.",
      },
    }),
    implied: true,
    about: "What the description at `/openapi.json` names, instead of `openapiv2_swagger` of the definition.",
  },
  mcp: {
    type: mapping<NonNullable<ProxyConfiguration["mcp"]>>({
      tools: {
        type: list(text()),
        required: true,
        about:
          "RPCs that AI agents may call as tools at `/mcp`, as `package.Service.Method`; `*` at the end is a wildcard.",
        flags: [{ name: "mcp", placeholder: "RPC", multiple: true }],
      },
      paramHeaders: {
        type: record(fieldName),
        fallback: {},
        about:
          "Request fields, as `package.Message.field`, that MCP clients repeat as `Mcp-Param-{name}` in the header, each with this name.",
      },
    }),
    about: "Tools of the Model Context Protocol. Default: none.",
  },
  visibility: {
    type: mapping<NonNullable<ProxyConfiguration["visibility"]>>({
      allow: {
        type: list(text()),
        required: true,
        about: "Labels of `google.api.visibility`; what has a rule with other labels only does not exist for callers.",
        flags: [{ name: "visibility", placeholder: "LABEL", multiple: true }],
      },
    }),
    about: "Which restricted parts of the definitions callers can use. Default: all.",
  },
  validate: {
    type: boolean,
    fallback: false,
    about:
      "Whether requests must satisfy the `buf.validate` rules of their messages. Requires `@bufbuild/protovalidate`, and descriptors from files.",
    flags: [{ name: "validate", value: true }],
  },
  validateReflected: {
    type: boolean,
    fallback: false,
    about:
      "Like `validate`, and also accepts standard rules from reflection. Validating a message takes at most 300 ms.",
    flags: [{ name: "validate-reflected", value: true }],
  },
  accessLog: {
    type: oneOf(["off", "errors", "all"]),
    fallback: "off",
    about: "Which calls are logged to standard output, as a line of JSON each.",
    flags: [{ name: "access-log", placeholder: "WHICH" }],
  },
  drain: {
    type: mapping<ProxyConfiguration["drain"]>({
      delayMs: {
        type: integer(0, maxDrainMs),
        fallback: drainTimesDefault.delayMs,
        about: "Milliseconds to keep serving after readiness fails at shutdown.",
        flags: [{ name: "drain-delay-ms", placeholder: "NUMBER" }],
      },
      timeoutMs: {
        type: integer(0, maxDrainMs),
        fallback: drainTimesDefault.timeoutMs,
        about: "Milliseconds that running calls may take after the delay.",
        flags: [{ name: "drain-timeout-ms", placeholder: "NUMBER" }],
      },
    }),
    implied: true,
    about: "How the proxy stops.",
  },
  requireAll: {
    type: boolean,
    fallback: false,
    about: "Whether `/readyz` returns 503 while any of several upstreams is unreachable, rather than while all are.",
    flags: [{ name: "require-all" }],
  },
  wait: {
    type: boolean,
    fallback: false,
    about:
      "Whether the proxy waits at the start for descriptors that cannot be read yet; mistakes in the configuration still end the start.",
    flags: [{ name: "wait" }],
  },
});
