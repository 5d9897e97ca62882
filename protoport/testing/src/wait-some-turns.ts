/** Waits 20 event loop turns, for events that must not happen or cannot be observed. */
export async function waitSomeTurns(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
}
