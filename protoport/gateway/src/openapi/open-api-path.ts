import { type PathTemplate, printTemplateLiteral, type TemplateVariable } from "../protocols/index.ts";

/** A path parameter, which is a variable or a wildcard. */
export interface PathParameter {
  readonly name: string;
  /** The path to the request field, in proto names. `undefined` for a wildcard outside a variable. */
  readonly fieldPath: readonly string[] | undefined;
  /** Whether the parameter is the field's complete value, one segment of the value, or any number of segments. */
  readonly covers: "field" | "part" | "segments";
  /** The description of a parameter that is a segment of the field's value. `undefined` for the complete value. */
  readonly description: string | undefined;
}

/** A path template in OpenAPI's syntax. */
export interface OpenApiPath {
  readonly path: string;
  /** The path parameters, in the order in which the path contains them. */
  readonly parameters: readonly PathParameter[];
}

/**
 * Converts a path template to OpenAPI's syntax. In OpenAPI, each path parameter is one segment.
 *
 * In a variable with several segments, a wildcard gets the name of the literal before it, as in AIP-122. For example,
 * `{name=shelves/*}` becomes `shelves/{shelf}`. Without a literal, the wildcard gets a number, as in `{name_1}`.
 * A wildcard outside a variable becomes `{segment_1}`. `**` becomes one parameter, because OpenAPI 3.1 cannot express
 * several segments. Dots in a field path become `_`, because generators convert names to identifiers.
 */
export function toOpenApiPath({ segments, variables, verb }: PathTemplate): OpenApiPath {
  const variableAt = (at: number): TemplateVariable | undefined =>
    variables.find(({ start, end }) => start <= at && at < end);
  const wildcards = [...segments.keys()].filter((at) => segments[at]?.kind !== "literal");
  const numberOf = (at: number): number =>
    wildcards.filter((other) => variableAt(other) === variableAt(at)).indexOf(at) + 1;
  const literalBefore = (at: number): string | undefined => {
    const precedingSegment = at > (variableAt(at)?.start ?? at) ? segments[at - 1] : undefined;
    return precedingSegment?.kind === "literal" ? precedingSegment.text : undefined;
  };
  const nameOf = (at: number): string => {
    const variable = variableAt(at);
    const field = variable?.fieldPath.join("_") ?? "segment";
    if (variable !== undefined && !hasParts(variable)) return field;
    return memberOfLiteral(literalBefore(at) ?? "") ?? `${field}_${numberOf(at)}`;
  };
  // Wildcards are shown as names, because generators copy descriptions into comments, which `*/` would end.
  const formOf = ({ start, end }: TemplateVariable): string =>
    segments
      .slice(start, end)
      .map((segment, at) => (segment.kind === "literal" ? segment.text : `{${nameOf(start + at)}}`))
      .join("/");
  const descriptionOf = (variable: TemplateVariable, at: number): string => {
    const literal = literalBefore(at);
    const part = literal === undefined ? `Wildcard ${numberOf(at)}` : `The part after \`${literal}/\``;
    return `${part} in \`${variable.fieldPath.join(".")}\`, whose format is \`${formOf(variable)}\`.`;
  };
  const parameters: PathParameter[] = [];
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return printTemplateLiteral(segment.text);
    const variable = variableAt(at);
    const isWhole = variable !== undefined && !hasParts(variable);
    parameters.push({
      name: freeName(nameOf(at), parameters),
      fieldPath: variable?.fieldPath,
      covers: segment.kind === "**" ? "segments" : isWhole ? "field" : "part",
      description: variable === undefined || isWhole ? undefined : descriptionOf(variable, at),
    });
    return `{${parameters.at(-1)?.name}}`;
  });
  return { path: `/${texts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`, parameters };
}

function hasParts({ start, end }: TemplateVariable): boolean {
  return end - start > 1;
}

// Matches the name of a collection (AIP-122), such as `cryptoKeys`.
const collection = /^[A-Za-z][A-Za-z0-9_-]*$/;

/** Returns a collection's singular form in snake_case, or `undefined` for a literal that is not a collection's name. */
function memberOfLiteral(literal: string): string | undefined {
  if (!collection.test(literal)) return undefined;
  const name = literal
    .replaceAll(/(?<=[a-z0-9])[A-Z]/g, "_$&")
    .replaceAll("-", "_")
    .toLowerCase();
  const [pattern, singular] = singulars.find(([plural]) => plural.test(name)) ?? [/$/, ""];
  return name.replace(pattern, singular);
}

// Plural endings and their singular forms. The first matching pattern applies.
const singulars: readonly (readonly [plural: RegExp, singular: string])[] = [
  [/(?<=series|species|status|ss|sis)$/, ""],
  [/ies$/, "y"],
  [/elves$/, "elf"],
  [/(?<=ss|sh|[nrt]ch|x|alias|status)es$/, ""],
  [/s$/, ""],
];

function freeName(name: string, taken: readonly PathParameter[]): string {
  return taken.some((parameter) => parameter.name === name) ? freeName(`${name}_`, taken) : name;
}

/** Returns a path without parameter names. OpenAPI treats paths that differ only in parameter names as identical. */
export function shapeOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, "{}");
}
