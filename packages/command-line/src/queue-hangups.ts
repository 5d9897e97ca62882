/**
 * Keeps SIGHUP from terminating this process, which it does without a listener, and queues it until a reload is
 * possible. A server calls this function in its first line, before it loads its other modules.
 *
 * @returns a function that sets what each SIGHUP calls. If a signal was received before, the callback is called
 * immediately
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
