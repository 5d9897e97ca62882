import type { GatewayRoute, TemplateSegment } from "@protoport/gateway";

/** A plugin's prefixes. Fastify's prefix comes first, then the gateway's prefix, and then the gateway's path. */
export interface PluginPrefixes {
  readonly ofFastify: string;
  readonly ofGateway: string;
}

/**
 * Returns the Fastify URLs that match a route's paths. The URLs may match more paths, because Fastify's wildcard is
 * always the last character. The gateway then matches each request exactly.
 */
export function fastifyUrlsOf({ path, template }: GatewayRoute, prefixes: PluginPrefixes): readonly string[] {
  const { ofFastify, ofGateway } = prefixes;
  if (template === undefined) return [toFastifyUrl(literalsOf(path.slice(ofFastify.length)))];
  const before = literalsOf(ofGateway);
  const segments = template.segments.map(toSent);
  const verb = template.verb && encodeURIComponent(template.verb);
  const wildcardAt = segments.findIndex(({ kind }) => kind === "**");
  if (wildcardAt < 0) return [toFastifyUrl([...before, ...segments], verb)];
  const beforeWildcard = [...before, ...segments.slice(0, wildcardAt)];
  const url = `${toFastifyUrl(beforeWildcard)}/*`;
  // A wildcard at the end of a template also matches no segments, so that `/v1/files/**` matches `/v1/files`.
  const isLast = wildcardAt === segments.length - 1 && beforeWildcard.length > 0;
  return isLast ? [url, toFastifyUrl(beforeWildcard, verb)] : [url];
}

/** Returns a segment with percent-encoded text, as sent by clients. Colons are encoded, except before the verb. */
function toSent(segment: TemplateSegment): TemplateSegment {
  return segment.kind === "literal" ? { kind: "literal", text: encodeURIComponent(segment.text) } : segment;
}

function literalsOf(path: string): TemplateSegment[] {
  return path
    .split("/")
    .slice(1)
    .map((text) => ({ kind: "literal", text }));
}

function toFastifyUrl(segments: readonly TemplateSegment[], verb?: string): string {
  return segments
    .map((segment, at) => `/${printFastifySegment(segment, `p${at}`, at === segments.length - 1 ? verb : undefined)}`)
    .join("");
}

function printFastifySegment(segment: TemplateSegment, parameter: string, verb: string | undefined): string {
  const suffix = verb === undefined ? "" : `:${verb}`;
  if (segment.kind === "literal" && isPlain(segment.text + suffix)) return escapeColons(segment.text + suffix);
  // Literals with other characters become parameters, because Fastify would decode or interpret these characters.
  return isPlain(suffix) ? `:${parameter}(.+)${escapeColons(suffix)}` : `:${parameter}`;
}

function isPlain(text: string): boolean {
  return /^[\w\-.~:]+$/.test(text);
}

function escapeColons(text: string): string {
  return text.replaceAll(":", "::");
}
