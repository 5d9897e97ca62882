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

const listLabel = { label: "list of [options](rest-options.md#options)" };

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
        about: "File of the certificate chain, read again on SIGHUP.",
        flags: [{ name: "tls-cert", placeholder: "FILE" }],
      },
      key: {
        type: text("path"),
        about: "File of the certificate's private key.",
        flags: [{ name: "tls-key", placeholder: "FILE" }],
      },
    }),
    about: "TLS of callers.",
  },
});

const json = mapping<JsonSection>({
  names: {
    type: oneOf(["json", "proto"]),
    fallback: "json",
    about: "Names of fields, on Connect too: `json` such as `bookId`, or `proto`.",
  },
  enums: {
    type: oneOf(["names", "numbers"]),
    fallback: "names",
    about: "How enum values are written, on Connect too.",
  },
  unpopulated: {
    type: boolean,
    about: "Whether fields with default values are written, on Connect too. Default: the profile's.",
  },
  int64: {
    type: oneOf(["strings", "numbers"]),
    fallback: "strings",
    about: "How 64-bit integers up to 2^53 are written on REST.",
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
    about: "Form of errors: google.rpc.Status, of Google's APIs, or problem details. Default: the profile's.",
  },
  errorBody: {
    type: errorBody,
    about:
      "Template of errors, with the placeholders `{code}`, `{number}`, `{message}`, `{details}` and `{httpStatus}`. Excludes `errors`.",
  },
  json: { type: json, implied: true, about: "How responses are written as JSON, on Connect too." },
  options: {
    type: { ...list(oneOf(switchNames)), ...listLabel },
    fallback: [],
    about: "Options of REST for all services, such as `lenient`.",
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
        name: { type: text(), required: true, about: "Full name; `*` at the end is a wildcard." },
        profile: { type: profile, about: "Preset. Default: `rest.profile`." },
        options: {
          type: { ...list(oneOf(switchNames.filter((each) => each !== "fullyDecodeReservedExpansion"))), ...listLabel },
          fallback: [],
          about: "Options in addition to `rest.options`.",
        },
      }),
    ),
    fallback: [],
    about: "Options of single services; the first matching item applies.",
  },
  rules: {
    type: list(text("path")),
    fallback: [],
    about: "Service configs in YAML or JSON, whose HTTP rules replace annotations.",
    flags: [{ name: "rules", placeholder: "FILE", multiple: true }],
  },
  omit: {
    type: list(text()),
    fallback: [],
    about: "RPCs without REST, as `package.Service.Method`.",
    flags: [{ name: "omit", placeholder: "RPC", multiple: true }],
  },
});

const cors = mapping<CorsSection>({
  origins: {
    type: list(originOrAny),
    required: true,
    about: "Origins whose pages may call; `*` for all.",
    flags: [{ name: "cors", placeholder: "ORIGIN", multiple: true }],
  },
  allowedHeaders: {
    type: list(fieldName),
    fallback: [],
    about: "More header fields that pages may send.",
  },
  exposedHeaders: {
    type: list(fieldName),
    fallback: [],
    about: "More header fields that pages may read.",
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
      host: { type: text("address"), about: "Address of the admin port. Default: `listen.host`." },
      port: {
        type: port,
        about: "Port for `/livez`, `/readyz` and `/metrics`.",
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
    about: "Timeouts and retries of services and methods.",
  },
  rest: { type: rest, implied: true, about: "How RPCs are mapped to REST." },
  authentication: {
    type: authenticationType,
    about: "Which credentials callers need. Default: the upstream checks them.",
  },
  rateLimit: {
    type: mapping<RateLimitSection>({
      perPrincipal: { type: rate, about: "Calls per second, and in a burst, of each authenticated caller." },
      perAddress: { type: rate, about: "Calls per second, and in a burst, of each IP address or IPv6 /64 network." },
    }),
    implied: true,
    about: "Rates, and sizes of bursts. Default: unlimited.",
  },
  cors: { type: cors, about: "Calls by pages of other origins." },
  trustedProxies: {
    type: list(text()),
    about: "Addresses and networks of proxies whose `X-Forwarded-For` is trusted.",
  },
  headerBytes: {
    type: integer(4_096, 1_048_576),
    fallback: upstreamLimits.headerBytes,
    about:
      "Bytes of a request's header, and of a response's header or trailer. An upstream that announces no limit gets at most 64 KiB.",
    flags: [{ name: "header-bytes", placeholder: "NUMBER" }],
  },
  requestBytes: {
    type: integer(1_024, maxMessageBytes),
    fallback: defaultReadMaxBytes,
    about: "Bytes of a request message, compressed or not.",
    flags: [{ name: "request-bytes", placeholder: "NUMBER" }],
  },
  responseBytes: {
    type: integer(1_024, maxMessageBytes),
    fallback: defaultReadMaxBytes,
    about: "Bytes of a response message, compressed or not.",
    flags: [{ name: "response-bytes", placeholder: "NUMBER" }],
  },
  docs: {
    type: boolean,
    fallback: true,
    about: "Whether `/openapi.json` and `/docs` are served, also without a credential.",
    flags: [{ name: "no-docs", value: false, about: "Disables `/openapi.json` and `/docs`." }],
  },
  openapi: {
    type: mapping<OpenApiSection>({
      title: {
        type: text(),
        about: "Title. Default: the definition's, or the names of the services.",
      },
      version: { type: text(), about: "Version. Default: the definition's, or 1.0.0." },
      license: {
        type: mapping<NonNullable<OpenApiSection["license"]>>({
          name: { type: text(), required: true, about: "Name of the license. Default: the definition's license." },
          identifier: { type: text(), about: "SPDX expression, such as `MIT`. Excludes `url`." },
          url: { type: text("URL"), about: "URL of the license. Excludes `identifier`." },
        }),
        about: "License. Default: the definition's.",
      },
      operationIds: {
        type: operationIdsType,
        fallback: "service",
        about:
          "Form of operation ids: `service` such as `v1_Shop_getOrder`, `rpc` such as `getOrder`, or `full` with the package.",
      },
    }),
    implied: true,
    about: "What `/openapi.json` names instead of the definition's `openapiv2_swagger`.",
  },
  mcp: {
    type: mapping<NonNullable<ProxyConfiguration["mcp"]>>({
      tools: {
        type: list(text()),
        required: true,
        about: "RPCs that are tools at `/mcp`, as `package.Service.Method`; `*` at the end is a wildcard.",
        flags: [{ name: "mcp", placeholder: "RPC", multiple: true }],
      },
      paramHeaders: {
        type: record(fieldName),
        fallback: {},
        about: "Names of request fields (`package.Message.field`) that MCP clients repeat as `Mcp-Param-{name}`.",
      },
    }),
    about: "Tools of the Model Context Protocol.",
  },
  visibility: {
    type: mapping<NonNullable<ProxyConfiguration["visibility"]>>({
      allow: {
        type: list(text()),
        required: true,
        about: "Labels of `google.api.visibility`; elements with other labels only do not exist for callers.",
        flags: [{ name: "visibility", placeholder: "LABEL", multiple: true }],
      },
    }),
    about: "Which restricted elements callers can use. Default: all.",
  },
  validate: {
    type: boolean,
    fallback: false,
    about:
      "Whether requests must satisfy `buf.validate` rules. Requires `@bufbuild/protovalidate`, and descriptors from files.",
    flags: [{ name: "validate", value: true }],
  },
  validateReflected: {
    type: boolean,
    fallback: false,
    about: "Like `validate`, also with standard rules from reflection, for at most 300 ms a message.",
    flags: [{ name: "validate-reflected", value: true }],
  },
  accessLog: {
    type: oneOf(["off", "errors", "all"]),
    fallback: "off",
    about: "Which calls are logged to standard output, as JSON lines.",
    flags: [{ name: "access-log", placeholder: "WHICH" }],
  },
  drain: {
    type: mapping<ProxyConfiguration["drain"]>({
      delayMs: {
        type: integer(0, maxDrainMs),
        fallback: drainTimesDefault.delayMs,
        about: "Milliseconds of serving after readiness fails at shutdown.",
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
    about: "Whether `/readyz` returns 503 while any upstream is unreachable, not only while all are.",
    flags: [{ name: "require-all" }],
  },
  wait: {
    type: boolean,
    fallback: false,
    about: "Whether the start waits for descriptors that cannot be read yet.",
    flags: [{ name: "wait" }],
  },
});
