/**
 * How many times as much CPU as the other the first work takes. They take turns, and of each the least counts, so that
 * a busy machine changes little. To be compared with a bound that is far from what is right and from what is wrong.
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
