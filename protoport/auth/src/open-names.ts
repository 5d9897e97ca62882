/** Returns a problem if a name in `open` cannot match any service or RPC. */
export function openOptionProblem(name: unknown): string | undefined {
  if (typeof name === "string" && validName.test(name)) return undefined;
  const got = typeof name === "string" ? JSON.stringify(name) : typeof name;
  const suggested = typeof name === "string" ? suggest(name) : undefined;
  const hint = suggested === undefined ? "" : `, did you mean "${suggested}"?`;
  return `must name services (package.Service) and RPCs (/package.Service/Method), got ${got}${hint}`;
}

const validName = /^(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\/[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\/[A-Za-z_]\w*)$/;

/** Returns the corrected name if the only mistake is a slash or a wildcard. */
function suggest(name: string): string | undefined {
  const [, service, method] = /^\/*([\w.]*\w)(?:\/+(?:(\w+)|\*)?|\.\*)?\/*$/.exec(name) ?? [];
  const suggested = method === undefined ? service : `/${service}/${method}`;
  return suggested !== undefined && validName.test(suggested) ? suggested : undefined;
}
