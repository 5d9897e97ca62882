/**
 * Returns whether the environment variable NODE_ENV is `production`. Bundlers replace the expression by its value. A
 * worker without NODE_ENV is not in production.
 */
export function isProduction(): boolean {
  try {
    return process.env["NODE_ENV"] === "production";
  } catch {
    // The platform has no `process`, or Deno does not allow access to the environment.
    return false;
  }
}
