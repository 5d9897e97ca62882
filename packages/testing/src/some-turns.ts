/** Lets the event loop turn some times, for what would happen soon and should not, or has nobody to tell of it. */
export async function someTurns(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
}
