type Signal = "traces" | "metrics";

/** Returns whether another program in the process has already registered an SDK for traces. */
export function isSdkRegistered(): boolean {
  // All copies of the OpenTelemetry API in a process share this global registry.
  const registered: unknown = Reflect.get(globalThis, Symbol.for("opentelemetry.js.api.1"));
  return typeof registered === "object" && registered !== null && "trace" in registered;
}

/** The signals that the OpenTelemetry variables request, without traces if other code has registered an SDK. */
export function requestedSignals(environment: NodeJS.ProcessEnv): ReadonlySet<Signal> {
  if (environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return new Set();
  const isRequested = (signal: Signal): boolean => {
    const exporter = environment[`OTEL_${signal.toUpperCase()}_EXPORTER`];
    if (exporter !== undefined && exporter !== "") return exporter !== "none";
    return Boolean(
      environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`] || environment["OTEL_EXPORTER_OTLP_ENDPOINT"],
    );
  };
  const signals = isSdkRegistered() ? (["metrics"] as const) : (["traces", "metrics"] as const);
  return new Set(signals.filter(isRequested));
}
