/**
 * The blob with which a machine joins the cluster: a text with `{{ .ClusterID }}` and
 * `{{ .Requirements }}` (a JSON list of key, operator and values) in it.
 */
import { operatorName } from '../contract/profile.ts';
import type { NodeSelectorRequirement } from '../contract/tables/capacity.ts';

const PLACE = /\{\{\s*(.*?)\s*\}\}/g;
export type BootstrapTemplate = (
  clusterId: string,
  requirements: readonly NodeSelectorRequirement[],
) => string;

/** Reads a template. Throws an `Error` that names a place that means nothing. */
export function bootstrapTemplate(text: string): BootstrapTemplate {
  for (const [, place] of text.matchAll(PLACE)) {
    if (place !== '.ClusterID' && place !== '.Requirements') {
      throw new Error(`bootstrap template: {{ ${place} }} is none of .ClusterID, .Requirements`);
    }
  }
  return (clusterId, requirements) =>
    text.replace(PLACE, (_, place: string) =>
      place === '.ClusterID' ? clusterId : requirementsText(requirements),
    );
}

function requirementsText(requirements: readonly NodeSelectorRequirement[]): string {
  return JSON.stringify(
    requirements.map(({ key, operator, values }) => {
      return { key, operator: operatorName(operator), values };
    }),
  );
}
