/**
 * Returns a time-out as the field `grpc-timeout` has it: at most eight digits and a unit (gRPC over HTTP/2, "Timeout").
 * Rounded up: the caller's own clock decides.
 */
export function toGrpcTimeout(timeoutMs: number): string {
  for (const [unit, unitMs] of timeoutUnits) {
    const value = Math.ceil(timeoutMs / unitMs);
    if (value < 1e8) return `${value}${unit}`;
  }
  return "99999999H";
}

const timeoutUnits = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
] as const;
