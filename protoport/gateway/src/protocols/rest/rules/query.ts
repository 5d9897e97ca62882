import type { DescMessage } from "@bufbuild/protobuf";
import { matcherOf } from "../../../http/index.ts";
import { type BoundFields, type FieldValues, problem, quoteValue, UnknownNames } from "../../../protobuf/index.ts";
import { isMapEntry, type ParameterBinding, resolveParameter, setParameter } from "./parameters.ts";
import { decodePercent } from "./raw-path.ts";
import type { BindingOptions } from "./rest-options.ts";

/** The message fields that a query may set, and the parameters that are ignored. */
interface QueryBinding extends ParameterBinding {
  /** Returns whether a parameter that names no field is ignored without a report. `undefined` if none is ignored. */
  readonly isIgnored: ((name: string) => boolean) | undefined;
}

const unknownOptions = "lenient or ignoredQueryParameters";

/** Creates a rule's query binding. */
export function createQueryBinding(
  message: DescMessage,
  boundFields: BoundFields,
  options: BindingOptions,
): QueryBinding {
  const { lenient, mapsInQuery, structsInQuery, goDurations, ignoredQueryParameters } = options;
  const selections = options.partialResponses ? ["$fields", "fields"] : [];
  const formats = options.prettyJson ? ["pretty"] : [];
  const isIgnored = createNameFilter([...ignoredQueryParameters, ...selections, ...formats]);
  return {
    message,
    boundFields,
    lenient,
    acceptsMaps: mapsInQuery,
    acceptsStructs: structsInQuery,
    acceptsGoDurations: goDurations,
    isIgnored,
  };
}

/**
 * Reads query parameters into a message. Parameters have proto names or JSON names. In `a.b=1&c=x&c=y`, the field `c`
 * is repeated. A `+` is a space.
 *
 * The query never overrides a field that the path or the body sets. Map entries and fields that are not repeated may be
 * set only once. Only one member of a oneof may be set.
 *
 * @param query - the encoded string after the question mark
 * @returns the names of ignored unknown parameters, which only a `lenient` binding allows
 * @throws ConnectError `InvalidArgument` that names all unknown parameters, or the first invalid parameter
 */
export function readQuery(binding: QueryBinding, query: string, fields: FieldValues): UnknownNames {
  const unknown = new UnknownNames();
  const results = { fields, paths: new Set<string>(), unknown };
  for (const text of query.split("&")) {
    if (text === "") continue;
    const equals = text.indexOf("=");
    const name = decodeQueryText(equals < 0 ? text : text.slice(0, equals));
    const parameter = name === undefined ? undefined : resolveParameter(binding, name);
    if (name !== undefined && parameter === undefined && binding.isIgnored?.(name) === true) continue;
    const value = equals < 0 ? "" : decodeQueryText(text.slice(equals + 1));
    if (name === undefined || value === undefined) {
      throw problem("ERR_QUERY_INVALID", `query parameter ${quoteValue(text)} is malformed`);
    }
    setParameter(binding, parameter, name, value, results);
  }
  if (unknown.count === 0 || binding.lenient) return unknown;
  const option = unknown.names.some((name) => isMapEntry(binding, name)) ? "mapsInQuery" : unknownOptions;
  throw problem("ERR_QUERY_INVALID", unknown.describe("query parameter"), { option });
}

/** Returns the values of the first parameter in `names` that a query has, joined by commas, or `undefined`. */
export function findParameter(query: string, names: readonly string[]): string | undefined {
  const parameters = query.split("&").map((text) => text.split(/=(.*)/s, 2).map((part) => decodeQueryText(part) ?? ""));
  for (const name of names) {
    const values = parameters.filter(([sent]) => sent === name).map(([, value = ""]) => value);
    if (values.length > 0) return values.join(",");
  }
  return undefined;
}

/**
 * Returns whether a query has a parameter that is not ignored. Invalid parameters count, too.
 *
 * @throws ConnectError `InvalidArgument` that names a parameter that the path or the body sets
 */
export function hasParameters(binding: QueryBinding, query: string): boolean {
  const isParameter = (text: string): boolean => {
    const [sent = ""] = text.split("=", 1);
    const name = decodeQueryText(sent) ?? "";
    return text !== "" && (binding.isIgnored?.(name) !== true || resolveParameter(binding, name) !== undefined);
  };
  return query.split("&").some(isParameter);
}

// Matches printable ASCII characters. RFC 3986 §3.4 allows fewer characters, but browsers do not escape all others.
const queryText = /^[!-~]*$/;

function decodeQueryText(text: string): string | undefined {
  return queryText.test(text) ? decodePercent(text.replaceAll("+", " ")) : undefined;
}

/**
 * Creates a function that returns whether a name matches a pattern. A pattern is an exact name, or a prefix that ends
 * with `*`, such as `utm_*`. Returns `undefined` without patterns.
 */
export function createNameFilter(patterns: readonly string[]): ((name: string) => boolean) | undefined {
  return patterns.length === 0 ? undefined : matcherOf(patterns);
}

/** Returns the patterns that match none of the given names. */
export function unmatchedPatterns(patterns: readonly string[], names: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !names.some(matcherOf([pattern])));
}
