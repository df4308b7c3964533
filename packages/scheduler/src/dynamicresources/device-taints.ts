/** Taints of devices keep requests away that do not tolerate them. */
import type { DeviceTaint, DeviceToleration } from '../devices/device-objects.ts';

/** Taints with other effects, unknown ones too, keep nobody away. */
const REPELLENT = new Set(['NoSchedule', 'NoExecute']);

function tolerates(toleration: DeviceToleration, taint: DeviceTaint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '');
}

export function toleratesTaints(
  taints: readonly DeviceTaint[] | undefined,
  tolerations: readonly DeviceToleration[] | undefined,
): boolean {
  return (taints ?? []).every(
    (taint) =>
      !REPELLENT.has(taint.effect) ||
      (tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}
