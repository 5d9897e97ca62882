/**
 * One segment of a path template: fixed text (already percent-decoded), `*` for one segment, `**` for any
 * number of segments, zero included.
 */
export type TemplateSegment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "*" }
  | { readonly kind: "**" };

/** A variable of a path template: the request field that takes what some of the segments matched. */
export interface TemplateVariable {
  /** The field's path from the request message, in proto names. */
  readonly fieldPath: readonly string[];
  /** Index of its first segment. */
  readonly start: number;
  /** Index behind its last segment. */
  readonly end: number;
}

/** A path template of google.api.HttpRule, parsed. */
export interface PathTemplate {
  readonly segments: readonly TemplateSegment[];
  /** In the order of the template. */
  readonly variables: readonly TemplateVariable[];
  /** The text behind the colon at the end of the template, decoded. */
  readonly verb: string | undefined;
}

/**
 * Whether a variable can take more than one segment. Then its value keeps `%2F` as it was sent, because a
 * decoded slash could not be told from one between segments; all else is decoded (google/api/http.proto).
 */
export function isMultiSegment(template: PathTemplate, variable: TemplateVariable): boolean {
  const segments = template.segments.slice(variable.start, variable.end);
  return segments.length > 1 || segments.some((segment) => segment.kind === "**");
}
