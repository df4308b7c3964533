use k8s_openapi::api::core::v1::ConfigMap;
use kube::{api::ListParams, config::{KubeConfigOptions, Kubeconfig}, Api, Client, Config};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("want a kubeconfig")?;
    let kubeconfig = Kubeconfig::read_from(path)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config)?);
    let listed = maps.list(&ListParams::default()).await?;
    let bytes: usize = listed
        .iter()
        .flat_map(|map| map.data.iter().flatten())
        .map(|(_, value)| value.len())
        .sum();
    println!("{} {}", listed.items.len(), bytes);
    Ok(())
}
