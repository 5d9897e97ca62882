import type { PathTemplate, TemplateSegment } from "./path-template.ts";

/**
 * Prints a path template, so that parsing the text gives the same template again. Variables that match one
 * segment are printed short (`{id}`), literals with the escapes they need.
 */
export function printPathTemplate(template: PathTemplate): string {
  const { segments, variables, verb } = template;
  const parts: string[] = [];
  let at = 0;
  for (const variable of variables) {
    parts.push(...segments.slice(at, variable.start).map(printSegment));
    const inside = segments.slice(variable.start, variable.end).map(printSegment).join("/");
    const name = variable.fieldPath.join(".");
    parts.push(inside === "*" ? `{${name}}` : `{${name}=${inside}}`);
    at = variable.end;
  }
  parts.push(...segments.slice(at).map(printSegment));
  return `/${parts.join("/")}${verb === undefined ? "" : `:${printLiteral(verb)}`}`;
}

function printSegment(segment: TemplateSegment): string {
  return segment.kind === "literal" ? printLiteral(segment.text) : segment.kind;
}

function printLiteral(text: string): string {
  // encodeURIComponent leaves "*" alone, which is a wild card here.
  return encodeURIComponent(text).replaceAll("*", "%2A");
}
