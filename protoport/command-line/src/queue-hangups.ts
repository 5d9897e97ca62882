/**
 * Queues SIGHUP until a reload is possible. Without a listener, SIGHUP would terminate the process. A server calls this
 * function in its first line, before it loads its other modules.
 *
 * @returns a function that sets the SIGHUP callback, and calls the callback immediately if a SIGHUP is queued
 */
export function queueHangups(): (reload: () => void) => void {
  let isQueued = false;
  let current = (): void => void (isQueued = true);
  process.on("SIGHUP", () => current());
  return (reload) => {
    current = reload;
    if (isQueued) reload();
    isQueued = false;
  };
}
