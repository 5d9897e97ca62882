/** Returns whether NODE_ENV is `production`. Bundlers replace the expression by its value. */
export function isProduction(): boolean {
  try {
    return process.env["NODE_ENV"] === "production";
  } catch {
    // The platform has no `process`, or Deno does not allow access to the environment.
    return false;
  }
}
