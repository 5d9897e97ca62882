import type { DescField } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { createUrlEntryParser, integerRangeOf } from "../json/index.ts";
import {
  answersStream,
  findProtoField,
  findUpdateMask,
  isMultiSegment,
  leafOf,
  resolveProtoPath,
  type RestBinding,
} from "../rest/index.ts";
import type { SwitchName } from "./rest-switches.ts";

/** The gateways and servers that people come from. */
export const peers = ["connect-node", "grpc-gateway", "envoy"] as const;
export type Peer = (typeof peers)[number];

/** What is otherwise than with a peer, for some bindings: the tables of docs/migration.md. */
export interface Difference {
  readonly from: readonly Peer[];
  /** What differs. */
  readonly says: string;
  /** What to do about it. */
  readonly advice: string;
  /** The options that make it the same, or as good. */
  readonly switches: readonly SwitchName[];
  readonly concerns: (binding: RestBinding) => boolean;
}

const proxies: readonly Peer[] = ["grpc-gateway", "envoy"];

/** All differences, those of most bindings last. */
export const differences: readonly Difference[] = [
  {
    from: ["grpc-gateway"],
    says: "%2F in a path variable of several segments stays %2F, as http.proto says",
    advice: "rest.fullyDecodeReservedExpansion decodes it, as UnescapingModeAllCharacters does.",
    switches: ["fullyDecodeReservedExpansion"],
    concerns: ({ template }) => template.variables.some((variable) => isMultiSegment(template, variable)),
  },
  {
    from: ["grpc-gateway"],
    says: "Bytes in a path may be base64 of either alphabet, with or without padding",
    advice: "Nothing to do: what grpc-gateway takes is taken.",
    switches: [],
    concerns: (binding) => pathFieldsOf(binding).some((field) => field.scalar === ScalarType.BYTES),
  },
  {
    from: proxies,
    says: "An integer in a path has one spelling: 007 and +7 are refused",
    advice: "Write integers as 0 or -?[1-9][0-9]*. No option changes this: a resource has one URL.",
    switches: [],
    concerns: (binding) =>
      pathFieldsOf(binding).some(({ scalar }) => scalar !== undefined && integerRangeOf(scalar) !== undefined),
  },
  {
    from: ["grpc-gateway"],
    says: "The custom kind * is every method, where grpc-gateway takes it for a method of that name",
    advice: "Name the method in the rule if one is meant.",
    switches: [],
    concerns: ({ pattern }) => pattern.httpMethod === "*",
  },
  {
    from: ["envoy"],
    says: "response_body is any field, where Envoy's configuration fails for all but HttpBody",
    advice: "Nothing to do.",
    switches: [],
    concerns: ({ pattern, toRaw }) => pattern.responseBody !== "" && toRaw === undefined,
  },
  {
    from: proxies,
    says: "A stream of the client is lines of JSON; JSON values without line breaks (grpc-gateway) or in an array (Envoy) are refused",
    advice: "jsonClientStreams of rest.service accepts them.",
    switches: ["jsonClientStreams"],
    concerns: ({ bodyFormat }) => bodyFormat.kind === "lines",
  },
  {
    from: ["grpc-gateway"],
    says: 'A server stream is lines of messages, without {"result": …} around each',
    advice: "streamInResults of rest.service wraps them.",
    switches: ["streamInResults"],
    concerns: (binding) => answersStream(binding.method) && binding.toRaw === undefined,
  },
  {
    from: ["envoy"],
    says: "A server stream is lines of JSON where Accept does not ask for application/json, which is the array",
    advice: "Have clients send Accept, or read lines.",
    switches: [],
    concerns: (binding) => answersStream(binding.method) && binding.toRaw === undefined,
  },
  {
    from: ["grpc-gateway"],
    says: "The bytes of a streamed HttpBody follow each other, without a line break between two messages",
    advice: "Nothing to do: what arrives is the file.",
    switches: [],
    concerns: (binding) => answersStream(binding.method) && binding.toRaw !== undefined,
  },
  {
    from: ["grpc-gateway"],
    says: "A PATCH without an update mask gets none from its body",
    advice: "updateMaskFromBody of rest.service makes one.",
    switches: ["updateMaskFromBody"],
    concerns: ({ method, pattern }) => findUpdateMask(method.input, pattern) !== undefined,
  },
  {
    from: ["grpc-gateway"],
    says: "labels[color]=red in a query is refused",
    advice: "mapsInQuery of rest.service accepts it.",
    switches: ["mapsInQuery"],
    concerns: (binding) => queryFieldsOf(binding).some(isMapOfTexts),
  },
  {
    from: proxies,
    says: "A query or a body that repeats a field of the path is refused",
    advice: "lenient of rest.service ignores it; sameValueAsPath accepts the same value in a body.",
    switches: ["lenient"],
    concerns: ({ boundByPath }) => boundByPath.size > 0,
  },
  {
    from: proxies,
    says: "A body is refused where the rule has none",
    advice: "ignoreBodies of rest.service ignores it. It never sets a field.",
    switches: ["ignoreBodies"],
    concerns: ({ bodyFormat }) => bodyFormat.kind === "none",
  },
  {
    from: proxies,
    says: "An unknown field or enum name in a JSON body is refused",
    advice: "lenient of rest.service ignores it, and rest.onIgnored reports it.",
    switches: ["lenient"],
    concerns: takesJson,
  },
  {
    from: proxies,
    says: "A JSON body of another content type is refused with 415",
    advice: "Have clients send Content-Type: application/json; forms of rest.service reads forms as forms.",
    switches: [],
    concerns: takesJson,
  },
  {
    from: ["grpc-gateway"],
    says: "Fields that are zero are left out of answers",
    advice: "alwaysEmitImplicit: true in jsonOptions writes them.",
    switches: [],
    concerns: ({ method, toRaw, preparedResponse }) =>
      toRaw === undefined && preparedResponse === undefined && method.output.fields.length > 0,
  },
  {
    from: ["envoy"],
    says: "+ in a query is a space",
    advice: "Have clients send a plus sign as %2B.",
    switches: [],
    concerns: (binding) => queryFieldsOf(binding).length > 0,
  },
  {
    from: ["envoy"],
    says: "A path with a slash more at its end is 404",
    advice: "Have clients send the path of the template.",
    switches: [],
    concerns: ({ template }) => template.segments.at(-1)?.kind !== "**",
  },
  {
    from: proxies,
    says: "An unknown query parameter is refused",
    advice: "lenient of rest.service ignores all of them; ignoredQueryParameters those that you name, such as utm_*.",
    switches: ["lenient"],
    concerns: () => true,
  },
  {
    from: ["connect-node"],
    says: "RPCs with a rule are served as REST too",
    advice: "Have admit and what stands in front of the server expect these paths, or leave RPCs out by rest.omit.",
    switches: [],
    concerns: () => true,
  },
];

function pathFieldsOf({ method, template }: RestBinding): readonly DescField[] {
  return template.variables.flatMap(({ fieldPath }) => {
    const path = resolveProtoPath(method.input, fieldPath);
    return path === undefined ? [] : [leafOf(path)];
  });
}

/** Returns the fields that the query sets, or sets parts of. */
function queryFieldsOf({ method, boundByPathOrBody }: RestBinding): readonly DescField[] {
  return method.input.fields.filter((field) => boundByPathOrBody.get(field) !== "whole");
}

function isMapOfTexts(field: DescField): boolean {
  return field.fieldKind === "map" && createUrlEntryParser(field) !== undefined;
}

/** Returns whether a body is JSON with fields or enums in it, of which some may be unknown. */
function takesJson({ bodyFormat, method, pattern }: RestBinding): boolean {
  if (bodyFormat.kind !== "json" && bodyFormat.kind !== "lines") return false;
  const field = findProtoField(method.input, pattern.body);
  return pattern.body === "*" || field?.message !== undefined || field?.enum !== undefined;
}
