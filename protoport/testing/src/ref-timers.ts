/** Returns how many timers keep this process running. */
export function countRefTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}
