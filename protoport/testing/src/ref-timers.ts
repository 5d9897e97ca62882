/** Returns how many timers keep this process running. */
export const countRefTimers = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
