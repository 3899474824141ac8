"""How much a load needs: autoscaling rules played in simulation, and the size of a cluster."""
