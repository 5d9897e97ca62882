/**
 * Returns the first function's CPU time divided by the other's. The functions run alternately and the minimum counts,
 * so that a busy machine has little effect. Compare the ratio with a bound well away from good and bad values.
 */
export async function costRatio(work: Work, other: Work, turns: number = 7): Promise<number> {
  let [least, leastOther] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let turn = 0; turn < turns; turn++) {
    least = Math.min(least, await cpuMs(work));
    leastOther = Math.min(leastOther, await cpuMs(other));
  }
  return least / leastOther;
}

type Work = () => void | Promise<void>;

async function cpuMs(work: Work): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
