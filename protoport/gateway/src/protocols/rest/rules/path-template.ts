/** A segment of a path template: a percent-decoded literal, `*` for one segment, or `**` for any number. */
export type TemplateSegment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "*" }
  | { readonly kind: "**" };

/** A variable in a path template, which names the request field that is set to the matched segments. */
export interface TemplateVariable {
  /** The field path from the request message, in proto names. */
  readonly fieldPath: readonly string[];
  /** The index of the variable's first segment. */
  readonly start: number;
  /** The index after the variable's last segment. */
  readonly end: number;
}

/** The parsed path template of a google.api.HttpRule. */
export interface PathTemplate {
  readonly segments: readonly TemplateSegment[];
  /** The variables in template order. */
  readonly variables: readonly TemplateVariable[];
  /** The decoded string after the colon at the end of the template. */
  readonly verb: string | undefined;
}

/**
 * Returns whether a variable can match more than one segment. The value of a multi-segment variable keeps `%2F` as
 * sent, because a decoded slash would look like a segment separator. Escapes other than `%2F` are decoded
 * (google/api/http.proto).
 */
export function isMultiSegment(template: PathTemplate, variable: TemplateVariable): boolean {
  const segments = template.segments.slice(variable.start, variable.end);
  return segments.length > 1 || segments[0]?.kind === "**";
}

/**
 * Prints a path template. Parsing the printed template returns the same template. A variable for one segment is printed
 * in the short form `{id}`. Literals have the necessary escapes.
 */
export function printPathTemplate(template: PathTemplate): string {
  const { segments, variables, verb } = template;
  const parts: string[] = [];
  let at = 0;
  for (const variable of variables) {
    parts.push(...segments.slice(at, variable.start).map(printSegment));
    const variableSegments = segments.slice(variable.start, variable.end).map(printSegment).join("/");
    const name = variable.fieldPath.join(".");
    parts.push(variableSegments === "*" ? `{${name}}` : `{${name}=${variableSegments}}`);
    at = variable.end;
  }
  parts.push(...segments.slice(at).map(printSegment));
  return `/${parts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`;
}

function printSegment(segment: TemplateSegment): string {
  return segment.kind === "literal" ? printTemplateLiteral(segment.text) : segment.kind;
}

/**
 * Prints a template literal with escapes for characters that have a meaning in templates or are not allowed in a path.
 * A mounted gateway matches a literal only in the printed form.
 */
export function printTemplateLiteral(text: string): string {
  // encodeURIComponent does not escape "*", which would be a wildcard in a template.
  return text.replace(escapedInLiterals, (characters) => encodeURIComponent(characters).replaceAll("*", "%2A"));
}

// Matches characters that template literals contain only as escapes. The pattern matches runs of characters, because an
// emoji has two UTF-16 code units.
const escapedInLiterals = /[^A-Za-z0-9\-._~!$&'()+,;=@]+/g;
