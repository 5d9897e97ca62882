/**
 * Formats a timeout for the field `grpc-timeout`, with at most eight digits and a unit (gRPC over HTTP/2, "Timeout").
 * The value is rounded up, because the caller enforces the exact deadline itself.
 */
export function formatGrpcTimeout(timeoutMs: number): string {
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
